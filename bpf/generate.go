// SPDX-License-Identifier: Apache-2.0

package bpf

// The kernel's headers include <asm/types.h>, which Debian installs in a folder named after the architecture. clang's
// BPF target does not search this folder by default.
//
//go:generate go tool bpf2go -type verdict steer steer.bpf.c -- -mcpu=v3 -Wall -Wextra -Werror -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu
//go:generate go tool bpf2go redirect redirect.bpf.c -- -mcpu=v3 -Wall -Wextra -Werror -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu
