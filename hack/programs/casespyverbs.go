// SPDX-License-Identifier: Apache-2.0

package main

// pyverbsCases are rdma-core's own tests. Over an in-memory network no device has an interface, which those of rdma_cm
// want. Those of newer releases have a libc and a Python of their own.
func pyverbsCases() []testCase {
	return []testCase{
		pyverbsCase("sh ../scripts/pyverbs.sh", []string{"python3-pyverbs"}, pyverbsWant{ran: 273, memory: 127, wire: 137}),
		newerPyverbs("trixie", "3.13", pyverbsWant{ran: 321, memory: 136, wire: 146}),
		newerPyverbs("sid", "3.14", pyverbsWant{ran: 390, memory: 149, wire: 160}),
	}
}

// pyverbsWant is how many tests run, and how many of them at least do not skip.
type pyverbsWant struct{ ran, memory, wire int }

func pyverbsCase(client string, from []string, want pyverbsWant) testCase {
	return testCase{client: client, from: from, check: func(n *network, said string) (string, error) {
		if n.wire {
			return judgePyverbs(said, want.ran, want.wire)
		}
		return judgePyverbs(said, want.ran, want.memory)
	}}
}

// newerPyverbs are those of another release of Debian's.
func newerPyverbs(release, python string, want pyverbsWant) testCase {
	var from []string
	for _, name := range []string{
		"libc6", "libgcc-s1", "libbz2-1.0", "liblzma5", "zlib1g", "libexpat1", "libffi8", "libssl3t64", "libsqlite3-0", "libuuid1", "libzstd1", "libcrypt1",
		"libpython" + python, "libpython" + python + "-minimal", "libpython" + python + "-stdlib", "python" + python + "-minimal", "python3-pyverbs",
		"libibverbs1", "librdmacm1t64", "ibverbs-providers", "libnl-3-200", "libnl-route-3-200",
	} {
		from = append(from, release+"/"+name)
	}
	c := pyverbsCase("sh ../scripts/pyverbsnewer.sh "+release+" "+python, from, want)
	c.long = true
	return c
}
