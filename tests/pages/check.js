// Says what on this page a reader cannot read, to the page around it: what sticks out of it, text of little contrast, and
// small text.
addEventListener("load", () => {
  const least_contrast = 4.5, least_large_contrast = 3, least_size = 11;
  const faults = [];
  const say = (what, element) => {
    const words = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    faults.push(what + ": " + element.tagName.toLowerCase() + (element.getAttribute("class") ? "." + element.getAttribute("class") : "") +
      (words ? " '" + words + "'" : ""));
  };
  // Colours of styles are rgb(), rgba() or color(srgb ...).
  const colour = text => {
    const numbers = (text.match(/[-\d.e]+/g) || []).map(Number);
    if (numbers.length < 3) return null;
    const scale = text.startsWith("color") ? 1 : 255;
    return {rgb: numbers.slice(0, 3).map(x => x / scale), alpha: numbers.length > 3 ? numbers[3] : 1};
  };
  const over = (front, alpha, back) => front.map((x, i) => x * alpha + back[i] * (1 - alpha));
  const luminance = rgb => {
    const [r, g, b] = rgb.map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const canvas = getComputedStyle(document.documentElement).colorScheme.includes("dark") &&
    matchMedia("(prefers-color-scheme: dark)").matches ? [0.07, 0.07, 0.07] : [1, 1, 1];
  // The background of an element, by the boxes around it.
  const background = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c && c.alpha > 0) layers.push(c);
    }
    return layers.reverse().reduce((back, c) => over(c.rgb, c.alpha, back), canvas);
  };
  const scrolls = element => {
    for (let e = element.parentElement; e; e = e.parentElement) {
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX)) return e;
    }
    return null;
  };
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) {
    faults.push("is " + document.documentElement.scrollWidth + " pixels wide, of " + width);
    for (const e of document.body.querySelectorAll("*")) {
      if (e.getBoundingClientRect().right > width + 1 && !scrolls(e)) { say("sticks out", e); break; }
    }
  }
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE", "TITLE", "title", "desc"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width === 0 || style.visibility === "hidden") continue;
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    if (opacity === 0) continue;
    const drawn = element.closest("svg");
    const scale = drawn && element.getScreenCTM ? Math.sqrt(Math.abs(element.getScreenCTM().a * element.getScreenCTM().d - element.getScreenCTM().b * element.getScreenCTM().c)) : 1;
    const size = parseFloat(style.fontSize) * scale;
    const front = colour(drawn ? style.fill : style.color);
    if (front) {
      // Text over a shape of a picture may have another background, which is not looked at.
      const back = background(element);
      const alpha = front.alpha * opacity * (drawn ? Number(style.fillOpacity) : 1);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const ratio = contrast(over(front.rgb, alpha, back), back);
      const key = "contrast " + ratio.toFixed(2);
      if (ratio < (large ? least_large_contrast : least_contrast) && !seen.has(key)) { seen.add(key); say(key, element); }
    }
    if (size < least_size && !element.closest("sup, sub, .exponent")) {
      const key = "text of " + size.toFixed(1) + " pixels";
      if (!seen.has(key)) { seen.add(key); say(key, element); }
    }
    const frame = scrolls(element);
    if (frame && getComputedStyle(frame).overflowX === "hidden") {
      const around = frame.getBoundingClientRect();
      if ((box.right > around.right + 1 || box.left < around.left - 1) && style.textOverflow !== "ellipsis" &&
          !seen.has(element.textContent)) { seen.add(element.textContent); say("is cut off", element); }
    } else if (!frame && (box.right > width + 1 || box.left < -1)) say("is outside of the page", element);
  }
  // Labels of a picture that lie on each other.
  for (const picture of document.querySelectorAll("svg")) {
    if (picture.parentElement.closest("svg")) continue;
    const labels = [...picture.querySelectorAll("text")].map(e => [e, e.getBoundingClientRect()]).filter(([, b]) => b.width > 0);
    for (let i = 0; i < labels.length; ++i) for (let k = i + 1; k < labels.length; ++k) {
      const [a, b] = [labels[i][1], labels[k][1]];
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left), y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 2 && y > 4) say("lies on '" + labels[i][0].textContent + "'", labels[k][0]);
    }
  }
  parent.postMessage({width, faults}, "*");
});
