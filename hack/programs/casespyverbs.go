// SPDX-License-Identifier: Apache-2.0

package main

// pyverbsCases returns the cases with rdma-core's tests. Devices of an in-memory network have no interface, which the
// tests of rdma_cm require. The tests of newer releases use their own libc and Python.
func pyverbsCases() []testCase {
	return []testCase{
		pyverbsCase("sh ../scripts/pyverbs.sh", []string{"python3-pyverbs"}, pyverbsWant{ran: 273, memory: 127, wire: 137}),
		newerPyverbs("trixie", "3.13", pyverbsWant{ran: 321, memory: 136, wire: 146}),
		newerPyverbs("sid", "3.14", pyverbsWant{ran: 390, memory: 149, wire: 160}),
	}
}

// pyverbsWant contains the number of tests that run, and the minimum number of them that are not skipped, by network.
type pyverbsWant struct{ ran, memory, wire int }

func pyverbsCase(client string, from []string, want pyverbsWant) testCase {
	return testCase{client: client, from: from, check: func(n *network, said string) (string, error) {
		if n.wire {
			return judgePyverbs(said, want.ran, want.wire)
		}
		return judgePyverbs(said, want.ran, want.memory)
	}}
}

// newerPyverbs returns the case with the tests of another Debian release.
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
