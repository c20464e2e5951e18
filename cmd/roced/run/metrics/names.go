// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Labels.
const (
	deviceLabel    = "device"    // device name
	placeLabel     = "place"     // where the packets were counted: XDP, socket, routers, engine or CM
	counterLabel   = "counter"   // counter of that place
	reasonLabel    = "reason"    // counter of that place, for lost packets
	directionLabel = "direction" // sent, received or delivered
	kindLabel      = "kind"      // of objects: pd, mr, cq, qp, ah, srq, xrcd, channel, id, event_channel, membership, attachment
	versionLabel   = "version"   // of the service
)

// Metrics.
var (
	buildInfo = describe("roced_build_info", "Always 1; the version is a label.", versionLabel)
	clients   = describe("roced_clients", "Number of connected programs.")
	users     = describe("roced_users", "Number of users with connected programs.")
	refused   = describe("roced_refused_connections_total", "Connections rejected because their user connects too often.")
	objects   = describe("roced_objects", "Objects held by all programs.", kindLabel)
	memory    = describe("roced_memory_bytes", "Memory of the queues and regions of all programs.")

	deviceOpen   = describe("roced_device_open", "Whether the device has a card (0 while its interface is missing).", deviceLabel)
	deviceOpens  = describe("roced_device_opens_total", "Number of times the device's card was opened.", deviceLabel)
	deviceActive = describe("roced_port_active", "Whether the device's port is active.", deviceLabel)

	packets = describe("roced_packets_total", "Packets by counter, without losses.", deviceLabel, placeLabel, counterLabel)
	dropped = describe("roced_dropped_packets_total", "Dropped packets by reason.", deviceLabel, placeLabel, reasonLabel)
	bytes   = describe("roced_bytes_total", "Bytes sent, received and delivered to programs.", deviceLabel, directionLabel)
	trains  = describe("roced_trains_sent_total", "Packet trains sent: frames with several packets each.", deviceLabel)
)

// metric is a metric with its documentation.
type metric struct {
	name, help string
	labels     []string
	*prometheus.Desc
}

// all lists all metrics.
var all []metric

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	all = append(all, metric{name, help, labels, d})
	return d
}
