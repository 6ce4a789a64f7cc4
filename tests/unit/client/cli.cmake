# SPDX-License-Identifier: Apache-2.0
# Tests of client/cli and client/bench: what can be tested without a daemon.
foreach(name text options json report input output key_file)
    cm_unit_test(client cli_${name} cm_cli_common)
endforeach()
foreach(name histogram schedule unit)
    cm_unit_test(client bench_${name} cm_bench)
endforeach()
