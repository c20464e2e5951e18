package main

// pyverbsCases are rdma-core's own tests. Over a network in memory no device has an interface, which those of rdma_cm
// want.
func pyverbsCases() []testCase {
	return []testCase{{
		from: []string{"python3-pyverbs"}, client: "sh ../scripts/pyverbs.sh",
		check: func(n *network, said string) (string, error) {
			if n.wire {
				return judgePyverbs(said, 273, 137)
			}
			return judgePyverbs(said, 273, 127)
		},
	}}
}
