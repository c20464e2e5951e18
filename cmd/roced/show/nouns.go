// SPDX-License-Identifier: Apache-2.0

package show

import "github.com/roced/roced/verbs/proto"

const statUse = "stat"

const objectHelp = `Root and the user of the service see the objects of all clients, other users only their
own. Column and JSON names are those of rdma(8) where it has them.`

// nouns lists the subcommands.
var nouns = []*noun{
	{
		use: "dev", short: "List the service's devices",
		help:   "Attributes are those of a program that opens the device now. For a device without a card, the\nlast column states the cause. NETWORK is xdp, udp (UDP sockets) or none (in memory). If packet\ntrains are not used, the last column states the cause. On the device \"loop\" of an in-memory\nnetwork, each program is a separate host with its own GUID.",
		header: []string{"DEV", "NETDEV", "NODE_GUID", "STATE", "NETWORK", "XDP", "AF_XDP", "SEND", "FW", ""}, rows: devices(newDeviceRow),
	},
	{
		use: "port", short: "List the ports of the service's devices",
		help:   "Each device has one port. MTU is the RDMA MTU, the maximum size of a datagram.",
		header: []string{"LINK", "STATE", "PHYSICAL", "NETDEV", "MTU", "NETDEV_MTU", "SPEED", ""}, rows: devices(newPortRow),
	},
	{
		use: "client", short: "List connected programs and their resources",
		help: "MEMORY is the size of queues and regions. Clients without a device are commands such as this one.\n\n" + objectHelp,
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
		help:   "UNREAD is the number of unread completions and the capacity. A CQ with an overrun has failed.\n\n" + objectHelp,
		header: headerOf("CQN", "UNREAD", "USERS", "STATE"), rows: objects(newCQRow, proto.CQs),
	},
	{
		use: "qp", short: "List queue pairs",
		help:   "SENDS and RECVS are the numbers of outstanding requests and the capacities. RQPN and DGID are the\npeer's queue pair number and address of a connected queue pair.\n\n" + objectHelp,
		header: headerOf("LQPN", "TYPE", "STATE", "QKEY", "SENDS", "RECVS", "GROUPS", "PDN", "SCQN", "RCQN", "RQPN", "DGID"), rows: objects(newQPRow, proto.QPs),
	},
	{
		use: "srq", short: "List shared receive queues",
		help:   "LIMIT is the armed limit, or 0.\n\n" + objectHelp,
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
		use: "mcast", short: "List multicast groups with attached queue pairs and members",
		help:   "An attached queue pair receives the group's messages. The host is a member of the group while at\nleast one program is a member that is not send-only.\n\n" + objectHelp,
		header: headerOf("MGID", "ROLE", "LQPN", "MLID"), rows: objects(newMcastRow, proto.Attachments, proto.Memberships),
	},
	{
		use: "cm", short: "List connection ids (rdma_cm)",
		help:   "EVENTS is the number of unread events, GROUPS the number of joined groups.\n\n" + objectHelp,
		header: headerOf("CMIDN", "PS", "TYPE", "STATE", "SRC", "DST", "EVENTS", "GROUPS"), rows: idRows,
	},
	{
		use: statUse, short: "Show counters of devices",
		help:   "Each packet that could not be received or sent is in exactly one counter, which is marked lost.\nZeros are omitted, except in JSON. The counters of a device restart at 0 when its card is reopened.",
		header: []string{"DEV", "PLACE", "NAME", "VALUE", ""}, rows: statRows,
	},
}
