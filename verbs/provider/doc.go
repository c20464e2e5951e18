// Package provider is what package verbs asks of a card: the commands of a program's session, as interfaces. Each
// command has a request structure and a grant structure. Programs do not need this package; it is for those that
// make a card, or carry commands from a program to one.
//
//	program ── verbs: Context, PD, QP, … ── commands ──► Provider
//	              │                                        ├─ verbs/hca.Session: a card in this process
//	              │                                        └─ verbs/client.Client: the service, by verbs/proto
//	              └───── queues in memory, from grants (datapath/ring) ─────► the card
//
// Commands are cut by noun (PDProvider, QPProvider, …), and every check is made on the Provider's side of them.
// The attributes that programs set and get (QPAttr, AHAttr, PortAttr, …) are here too, since requests carry them;
// package verbs has them under the same names.
//
// A Provider's methods are safe for concurrent use, and hold no lock that posting or polling needs. Each error
// wraps one of package verbs' Err values, and the host's error if there is one. Package verbs/verbstest tests all
// of this.
//
// Left out: objects with methods, queues and completions, which are package verbs; what is said between a client
// and the service, which is verbs/proto.
package provider
