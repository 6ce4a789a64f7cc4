# SPDX-License-Identifier: Apache-2.0
# Compiler flags that every target of the project gets, through the interface target cm_flags.
add_library(cm_flags INTERFACE)
target_compile_definitions(cm_flags INTERFACE _GNU_SOURCE)
target_compile_options(cm_flags INTERFACE
    -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wundef -Wformat=2 -Wimplicit-fallthrough
    -fstack-protector-strong -fno-strict-aliasing -fvisibility=hidden)
if(CIPHERMILL_WERROR)
    target_compile_options(cm_flags INTERFACE -Werror)
endif()
if(CIPHERMILL_FUZZ)
    # Coverage for every target, so that libFuzzer sees into the libraries; only fuzz targets get its main().
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()
if(CIPHERMILL_SANITIZE)
    add_compile_options(-fsanitize=${CIPHERMILL_SANITIZE} -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${CIPHERMILL_SANITIZE})
    if(CIPHERMILL_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
else()
    target_compile_definitions(cm_flags INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:_FORTIFY_SOURCE=2>)
    add_link_options(-Wl,-z,relro,-z,now)
endif()
