// Package traffic is what every measurement of datagrams needs: to send (send.go), to count what arrives (arrivals.go),
// and to give up where nothing comes (watch.go).
package traffic
