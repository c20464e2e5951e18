package cli

// The ways to the network.
const (
	networkXDP  = "xdp"
	networkUDP  = "udp"
	networkNone = "none" // in memory
)

// Network is the way to the network of a device with these modes of XDP and of its sockets.
func Network(xdp, socket string) string {
	switch {
	case socket == networkUDP:
		return networkUDP
	case xdp == "" || xdp == networkNone:
		return networkNone
	}
	return networkXDP
}

// Way is that in words, with its modes.
func Way(xdp, socket string) string {
	switch Network(xdp, socket) {
	case networkUDP:
		return "UDP sockets"
	case networkNone:
		return "a network in memory"
	}
	return "XDP " + xdp + ", AF_XDP " + socket
}
