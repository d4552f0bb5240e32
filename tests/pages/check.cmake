# SPDX-License-Identifier: MIT
# cmake -DCHROMIUM=<program> -DWORK=<folder> -DPAGES=<page;...> -P check.cmake
#
# Opens pages in Chromium, 390 and 1280 pixels wide, light and dark, and lets check.js look for what cannot be read there.
#
# LIBRARY_PAGES   the program of that name, whose pages join in
# EXAMPLES        folder of the examples, whose pages join in, of short runs
# DATA            the digits that these train on
# REHEARSAL       the page that the rehearsal of the GPU benchmarks leaves, where it ran

cmake_minimum_required(VERSION 3.22)

if(NOT CHROMIUM)
  message(NOTICE "skipped: there is no Chromium")
  return()
endif()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(COPY_FILE "${CMAKE_CURRENT_LIST_DIR}/check.js" "${WORK}/check.js")
# run(<command>...): makes pages, in the work folder.
function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(status)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}: ${status}\n${text}")
  endif()
endfunction()
if(LIBRARY_PAGES)
  run("${LIBRARY_PAGES}" .)
endif()
if(EXAMPLES)
  run("${EXAMPLES}/train_digits" --data "${DATA}" --epochs 2 --repeats 1 --report digits.html)
  run("${EXAMPLES}/train_convolution" --data "${DATA}" --epochs 1 --report convolution.html)
  run("${EXAMPLES}/train_gpt" --text "${DATA}" --recipe all --layers 1 --width 32 --heads 2 --context 16 --batch 4 --steps 30
    --report gpt.html --weights weights)
  run("${EXAMPLES}/mp-convert" weights.bf16 --to mxfp4 --report=convert.html)
  run("${EXAMPLES}/mp-replay-scaling" --html scalers.html)
  run("${EXAMPLES}/mp-tensor-cores" --k 256 --size 2 --html tensor_cores.html)
endif()
file(GLOB made "${WORK}/*.html")
list(APPEND PAGES ${made})
if(REHEARSAL AND EXISTS "${REHEARSAL}")
  list(APPEND PAGES "${REHEARSAL}")
endif()

# Two frames, each as wide as a screen, whose scripts say here what they have found.
file(WRITE "${WORK}/frames.html" [[
<!DOCTYPE html>
<body><pre id="found"></pre>
<script>
onmessage = message => {
  const {width, faults} = message.data;
  document.getElementById("found").textContent += faults.map(it => `[${width}: ${it}]`).join("") + `[seen at ${width}]`;
};
for (const width of [390, 1280]) {
  const frame = document.createElement("iframe");
  frame.style = `border: 0; width: ${width}px; height: 900px`;
  frame.src = "page.html";
  document.body.append(frame);
}
</script>
</body>
]])

set(faults 0)
foreach(page IN LISTS PAGES)
  if(NOT EXISTS "${page}")
    message(FATAL_ERROR "there is no ${page}")
  endif()
  file(COPY_FILE "${page}" "${WORK}/page.html")
  file(APPEND "${WORK}/page.html" "<script src=\"check.js\"></script>\n")
  foreach(scheme IN ITEMS dark light)
    # Chromium counts dark as 0.
    set(number 0)
    if(scheme STREQUAL "light")
      set(number 1)
    endif()
    execute_process(
      COMMAND "${CHROMIUM}" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files
        "--user-data-dir=${WORK}/profile" "--blink-settings=preferredColorScheme=${number}" --virtual-time-budget=20000
        --dump-dom "file://${WORK}/frames.html"
      OUTPUT_VARIABLE text ERROR_QUIET TIMEOUT 120)
    string(REGEX MATCH "<pre id=\"found\">([^<]*)</pre>" text "${text}")
    foreach(width IN ITEMS 390 1280)
      if(NOT text MATCHES "\\[seen at ${width}\\]")
        message(FATAL_ERROR "${page}: Chromium has not shown it")
      endif()
    endforeach()
    # Brackets and semicolons mean something in lists.
    string(REPLACE ";" "," text "${text}")
    string(REGEX MATCHALL "\\[[0-9]+: [^]]*\\]" found "${text}")
    foreach(fault IN LISTS found)
      message(NOTICE "${page}, ${scheme}, ${fault}")
      math(EXPR faults "${faults} + 1")
    endforeach()
  endforeach()
endforeach()
if(faults)
  message(FATAL_ERROR "${faults} things on pages cannot be read")
endif()
list(LENGTH PAGES count)
message(STATUS "${count} pages can be read")
