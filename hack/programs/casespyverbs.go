package main

// pyverbsCases are rdma-core's own tests. Over a network in memory no device has an interface, which those of rdma_cm
// want.
func pyverbsCases() []testCase {
	return []testCase{{
		from: []string{"python3-pyverbs"}, client: "sh ../scripts/pyverbs.sh",
		check: func(n *network, said string) (string, error) {
			want := pyverbsResult{ran: 273, passed: 126}
			if n.wire {
				want.passed = 136
			}
			return want.judge(said)
		},
	}}
}
