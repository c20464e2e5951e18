package show

import "github.com/roced/roced/verbs/proto"

const statUse = "stat"

const objectHelp = `Of all clients for root and the service's own user, for others of their own programs.
Columns and the names in JSON are those of rdma(8) where it has them.`

// nouns are what the service can be asked for.
var nouns = []*noun{
	{
		use: "dev", short: "List the service's devices",
		help:   "As a program sees them that opens them now. A device that has no card now says why.\nNETWORK is xdp, udp (UDP sockets) or none (in memory). Where packets in a row do not leave in trains,\nthe last column says why.\nThe device \"loop\" of a network in memory gives each program a host of its own, with a GUID of its own.",
		header: []string{"DEV", "NETDEV", "NODE_GUID", "STATE", "NETWORK", "XDP", "AF_XDP", "SEND", "FW", ""}, rows: devices(newDeviceRow),
	},
	{
		use: "port", short: "List the ports of the service's devices",
		help:   "Each device has one. MTU is the RDMA MTU: the longest datagram.",
		header: []string{"LINK", "STATE", "PHYSICAL", "NETDEV", "MTU", "NETDEV_MTU", "SPEED", ""}, rows: devices(newPortRow),
	},
	{
		use: "client", short: "List the programs that are connected, and what they have",
		help: "MEMORY is that of queues and regions. A client without a device is one that looks, as this command.\n\n" + objectHelp,
		header: []string{
			"CLIENT", "PID", "COMM", "USER", "DEV", "SINCE", "PD", "CQ", "QP", "SRQ", "MR", "AH", "MEMBER", "ATTACHED", "MEMORY",
		}, rows: clientRows,
	},
	{
		use: "pd", short: "List protection domains", help: objectHelp,
		header: headerOf("PDN", "USERS"), rows: objects(newPDRow, proto.PDs),
	},
	{
		use: "cq", short: "List completion queues",
		help:   "UNREAD is how many completions wait, of how many that fit. A CQ that was overrun has failed.\n\n" + objectHelp,
		header: headerOf("CQN", "UNREAD", "USERS", "STATE"), rows: objects(newCQRow, proto.CQs),
	},
	{
		use: "qp", short: "List queue pairs",
		help:   "SENDS is how many requests wait, RECVS how many are posted, of how many that fit. RQPN and\nDGID are the peer's queue pair and address, of a connected one.\n\n" + objectHelp,
		header: headerOf("LQPN", "TYPE", "STATE", "QKEY", "SENDS", "RECVS", "GROUPS", "PDN", "SCQN", "RCQN", "RQPN", "DGID"), rows: objects(newQPRow, proto.QPs),
	},
	{
		use: "srq", short: "List shared receive queues",
		help:   "LIMIT is the armed one, 0 if none is.\n\n" + objectHelp,
		header: headerOf("SRQN", "RECVS", "LIMIT", "USERS", "PDN"), rows: objects(newSRQRow, proto.SRQs),
	},
	{
		use: "mr", short: "List memory regions", help: objectHelp,
		header: headerOf("MRN", "LKEY", "MRLEN", "IOVA", "ACCESS", "PDN"), rows: objects(newMRRow, proto.MRs),
	},
	{
		use: "ah", short: "List address handles", help: objectHelp,
		header: headerOf("AHN", "SGID", "DGID", "STATE", "PDN"), rows: objects(newAHRow, proto.AHs),
	},
	{
		use: "mcast", short: "List groups: what is attached to them, and who is a member",
		help:   "A queue pair that is attached gets the group's messages. The host is a member while somebody is a member\nthat is not send-only.\n\n" + objectHelp,
		header: headerOf("MGID", "ROLE", "LQPN", "MLID"), rows: objects(newMcastRow, proto.Attachments, proto.Memberships),
	},
	{
		use: "cm", short: "List connection ids (rdma_cm)",
		help:   "EVENTS wait to be read by the program; GROUPS are those that the id has joined.\n\n" + objectHelp,
		header: headerOf("CMIDN", "PS", "TYPE", "STATE", "SRC", "DST", "EVENTS", "GROUPS"), rows: idRows,
	},
	{
		use: statUse, short: "Show counters of devices",
		help:   "Each packet that was to be received or sent and was not is in exactly one counter that is marked lost.\nThose that are 0 are left out, but in JSON. A device's counters begin at 0 when its card is opened again.",
		header: []string{"DEV", "PLACE", "NAME", "VALUE", ""}, rows: statRows,
	},
}
