// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"

	"github.com/roced/roced/hack/bench/harness"
)

// childRoles contains the functions of the children.
var childRoles = harness.Roles{
	"udp receive": udpReceive, "udp send": udpSend, "udp pong": udpPong, "udp ping": udpPing,
	"udp gso receive": udpReceiveTrains, "udp gso send": udpSendTrains,
	"udp gso cut receive": udpReceiveCutTrains, "udp gso cut send": udpSendTrains,
	"raw receive": rawReceive, "raw send": rawSend,
	"inline receive": rocedReceive, "inline send": rocedSend, "inline pong": rocedPong, "inline ping": rocedPing,
	"worker receive": rocedReceive, "worker send": rocedSend, "worker pong": rocedPong, "worker ping": rocedPing,
	"udp receive group": udpReceiveGroup, "udp send group": udpSendGroup,
	"inline receive group": rocedReceiveGroup, "inline send group": rocedSendGroup,
	"ud inline receive": shortReceive, "ud inline send": shortSend, "ud inline pong": shortPong, "ud inline ping": shortPing,
	"ud worker receive": shortReceive, "ud worker send": shortSend, "ud worker pong": shortPong, "ud worker ping": shortPing,
	"requests udp serve": udpServe, "requests udp request": udpRequest,
	"requests worker serve": udServe, "requests worker request": udRequest,
	"rpc tcp serve": rpcServeTCP, "rpc tcp request": rpcRequestTCP, "rpc rc serve": rpcServe, "rpc rc request": rpcRequest,
	"inline receive mixed": receiveMixed, "inline send mixed": sendMixed,
	"worker receive mixed": receiveMixed, "worker send mixed": sendMixed,
	"xdp generate": generate, "worker idle": idle,
	"udp receive paced": udpReceivePaced, "udp send paced": udpSendPaced,
	"worker receive paced": rocedReceivePaced, "moderated receive paced": rocedReceivePaced, "worker send paced": rocedSendPaced,
	"daemon receive": rocedReceive, "daemon send": rocedSend, "daemon pong": rocedPong, "daemon ping": rocedPing,
	"daemon spinning receive": rocedReceive, "daemon spinning send": rocedSend, "daemon spinning pong": rocedPong, "daemon spinning ping": rocedPing,
	"daemon receive group": rocedReceiveGroup, "daemon send group": rocedSendGroup,
	"daemon run": runDaemon, "daemon connect": connectMany, "daemon objects": makeObjects, "worker objects": makeObjects,
	"rc send receive": connectedReceive, "rc write receive": connectedReceive, "rc read receive": connectedReceive,
	"rc send send": connectedSend, "rc write send": connectedSend, "rc read send": connectedSend, "rc send ping": connectedPing, "rc send pong": connectedPong,
	"short send receive": shortConnectedReceive, "short write receive": shortConnectedReceive, "short read receive": shortConnectedReceive,
	"short send send": shortConnectedSend, "short write send": shortConnectedSend, "short read send": shortConnectedSend,
	"short send ping": shortConnectedPing, "short send pong": shortConnectedPong,
	"tcp receive": tcpReceive, "tcp send": tcpSend, "tcp unsegmented receive": tcpReceive, "tcp unsegmented send": tcpSend,
	"udp join": udpJoin, "worker join": rocedJoin,
}

// prepareChild prepares a child's thread and the runtime for its role.
func prepareChild(j harness.Job) error {
	switch j.Variant {
	case "udp", "udp gso", "udp gso cut", "raw", "xdp":
		runtime.LockOSThread() // the sockets belong to the namespace of this thread
		if err := harness.Enter(j.Namespace); err != nil {
			return err
		}
	case "inline", "ud inline", "rc send", "rc write", "rc read", "short send", "short write", "short read":
		runtime.LockOSThread() // a spinning program has its own thread, as raw and udp have
	case "worker", "moderated", "ud worker", "daemon spinning":
		runtime.GOMAXPROCS(max(runtime.NumCPU(), 3))
	}
	return nil
}
