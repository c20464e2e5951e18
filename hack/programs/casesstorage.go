// SPDX-License-Identifier: Apache-2.0

package main

var iscsiPackages = []string{"tgt", "libiscsi-bin", "libiscsi7", "libcunit1", "libaio1"}

// iscsiCases are a disk by iSCSI over RDMA. tgt registers as much memory as it is told to, by default all that a user may.
func iscsiCases() []testCase {
	return []testCase{{
		from: iscsiPackages, server: "sh ../scripts/tgtd.sh", client: "sh ../scripts/iscsi.sh SERVER", ends: true, tries: 5,
		want: `(?s)Suite: Write16.*Suite: ReadCapacity16`, alien: "the virtual machine has not all of tgt's libraries",
	}}
}

var qemuPackages = []string{
	"qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios", "libaio1", "libbpf1", "libcapstone4", "libfdt1", "libfuse3-3",
	"libjpeg62-turbo", "libpixman-1-0", "libpmem1", "libdaxctl1", "libndctl6", "libslirp0", "liburing2", "libvdeplug2", "libseccomp2",
	"libsasl2-2", "libnuma1",
}

// qemuCases migrate a small guest, with memory of its own and with memory that it shares.
func qemuCases() (cases []testCase) {
	for _, memory := range []string{"", " shared"} {
		cases = append(cases, testCase{
			from: qemuPackages, server: "python3 ../scripts/migrate.py destination SERVER" + memory, client: "python3 ../scripts/migrate.py source SERVER" + memory,
			want: `migrated: \d{8}`, long: true, tries: 5, alien: "the virtual machine has not all of qemu's libraries",
		})
	}
	return cases
}
