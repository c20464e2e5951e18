// SPDX-License-Identifier: Apache-2.0

package main

var iscsiPackages = []string{"tgt", "libiscsi-bin", "libiscsi7", "libcunit1", "libaio1"}

// iscsiCases returns the case with a disk over iSER. tgt registers a configurable amount of memory, by default more
// than users are allowed to.
func iscsiCases() []testCase {
	return []testCase{{
		from: iscsiPackages, server: "sh ../scripts/tgtd.sh", client: "sh ../scripts/iscsi.sh SERVER", ends: true, tries: 5,
		want: `(?s)Suite: Write16.*Suite: ReadCapacity16`, alien: "the virtual machine lacks libraries of tgt",
	}}
}

var qemuPackages = []string{
	"qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios", "libaio1", "libbpf1", "libcapstone4", "libfdt1", "libfuse3-3",
	"libjpeg62-turbo", "libpixman-1-0", "libpmem1", "libdaxctl1", "libndctl6", "libslirp0", "liburing2", "libvdeplug2", "libseccomp2",
	"libsasl2-2", "libnuma1",
}

// qemuCases returns cases that migrate a small guest with private and with shared memory.
func qemuCases() (cases []testCase) {
	for _, memory := range []string{"", " shared"} {
		cases = append(cases, testCase{
			from: qemuPackages, server: "python3 ../scripts/migrate.py destination SERVER" + memory, client: "python3 ../scripts/migrate.py source SERVER" + memory,
			want: `migrated: \d{8}`, long: true, tries: 5, alien: "the virtual machine lacks libraries of QEMU",
		})
	}
	return cases
}
