package metrics

import "github.com/prometheus/client_golang/prometheus"

// The labels.
const (
	deviceLabel    = "device"    // a device's name
	placeLabel     = "place"     // where packets were counted: XDP, socket, routers, engine or CM
	counterLabel   = "counter"   // a counter of that place
	reasonLabel    = "reason"    // likewise, of those that count packets that were lost
	directionLabel = "direction" // sent, received or delivered
	kindLabel      = "kind"      // of objects: pd, mr, cq, qp, ah, srq, channel, membership, attachment
	versionLabel   = "version"   // of the service
)

// The metrics.
var (
	buildInfo = describe("roced_build_info", "Always 1; the version is a label.", versionLabel)
	clients   = describe("roced_clients", "Programs that are connected.")
	users     = describe("roced_users", "Users with programs that are connected.")
	refused   = describe("roced_refused_connections_total", "Connections closed unread: their user connects too often.")
	objects   = describe("roced_objects", "What programs hold, all together.", kindLabel)
	memory    = describe("roced_memory_bytes", "Memory of programs' queues and regions, all together.")

	deviceOpen   = describe("roced_device_open", "Whether the device has a card: 0 while its interface is missing.", deviceLabel)
	deviceOpens  = describe("roced_device_opens_total", "How often a card was opened for the device.", deviceLabel)
	deviceActive = describe("roced_port_active", "Whether the device's port is active, so that packets can pass.", deviceLabel)

	packets = describe("roced_packets_total", "Packets by counter; none of these was lost.", deviceLabel, placeLabel, counterLabel)
	dropped = describe("roced_dropped_packets_total", "Packets that were dropped, each for one reason.", deviceLabel, placeLabel, reasonLabel)
	bytes   = describe("roced_bytes_total", "Bytes sent, received, and delivered to programs.", deviceLabel, directionLabel)
	trains  = describe("roced_trains_sent_total", "Frames sent that carried several packets each.", deviceLabel)
)

// metric is one, as it is documented.
type metric struct {
	name, help string
	labels     []string
	*prometheus.Desc
}

// all are the metrics.
var all []metric

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	all = append(all, metric{name, help, labels, d})
	return d
}
