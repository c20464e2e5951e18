// SPDX-License-Identifier: Apache-2.0

package config

// Differences returns the names of the keys in which two devices differ.
func Differences(a, b Device) (names []string) {
	for _, key := range []struct {
		name string
		same bool
	}{
		{"interface", a.Interface == b.Interface},
		{"name", a.Name == b.Name},
		{"network", a.Network == b.Network},
		{"xdp", a.XDP == b.XDP},
		{"af_xdp", a.AFXDP == b.AFXDP},
		{"send", a.Send == b.Send},
		{"membership", a.Membership == b.Membership},
		{"rdma_mtu", a.RDMAMTU == b.RDMAMTU},
		{"frames", a.Frames == b.Frames},
		{"workers", a.Workers == b.Workers},
		{"spin", a.Spin == b.Spin},
		{"congestion", a.Congestion == b.Congestion},
		{"dcqcn", a.DCQCN == b.DCQCN},
		{"recovery", a.Recovery == b.Recovery},
		{"tuning", a.Tuning == b.Tuning},
	} {
		if !key.same {
			names = append(names, key.name)
		}
	}
	return names
}
