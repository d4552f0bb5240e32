# SPDX-License-Identifier: MIT
"""Conan 2 recipe of the tree that it lies in: conan create packaging/conan"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class MixedPrecision(ConanFile):
    name = "mp-mixed-precision"
    description = "Mixed-precision numerics in C++20 and CUDA headers"
    license = "MIT"
    topics = ("mixed-precision", "half", "bfloat16", "fp8", "autocast", "loss-scaling", "cuda", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def _top(self):
        return os.path.normpath(os.path.join(self.recipe_folder, "..", ".."))

    def set_version(self):
        text = load(self, os.path.join(self._top, "include", "mp", "config.hpp"))
        parts = re.findall(r"^#define MP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.MULTILINE)
        self.version = self.version or ".".join(parts)

    def export_sources(self):
        for pattern in ("include/*", "cmake/*", "CMakeLists.txt", "LICENSE"):
            copy(self, pattern, self._top, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ("MP_BUILD_TESTS", "MP_BUILD_EXAMPLES"):
            toolchain.cache_variables[option] = False
        toolchain.cache_variables["MP_INSTALL"] = True
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan writes these itself.
        for folder in ("cmake", "pkgconfig", "doc"):
            rmdir(self, os.path.join(self.package_folder, "share", folder))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "mp")
        self.cpp_info.set_property("cmake_target_name", "mp::mp")
        self.cpp_info.set_property("pkg_config_name", "mp")
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
