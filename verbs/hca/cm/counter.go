// SPDX-License-Identifier: Apache-2.0

package cm

// Counter identifies a count of a manager. Each datagram passed to Receive is counted once, by a counter of the first
// group. For the card it was delivered, even if it is dropped here.
type Counter uint8

// The counters.
const (
	Requests              Counter = iota // requests for datagram services accepted by a listener
	Duplicates                           // retries of such a request
	NoListener                           // requests without a listener, refused
	BadAddress                           // requests with an unknown or wrong address header, refused
	BacklogFull                          // requests without room at the listener, dropped
	Replies                              // replies to an inquiry
	ConnectionRequests                   // requests for connections accepted by a listener
	ConnectionDuplicates                 // repeated messages of connections
	ConnectionBacklogFull                // requests for connections without room at the listener, dropped
	ConnectionMessages                   // answers and ends of existing connections
	ConnectionsRejected                  // requests for connections, refused
	StaleConnections                     // requests and replies of a queue pair that has a connection here, refused
	DisconnectsConfirmed                 // ends of unknown connections, confirmed
	PathsRefused                         // alternate paths for connections, refused
	Unsupported                          // Get and Set of any class, refused
	Stray                                // answers to unknown or completed requests
	Unknown                              // other methods, attributes and classes, dropped
	BadVersion                           // unknown versions; refused if there is a message for it
	BadLength                            // length other than that of a MAD, dropped

	Sent            // messages of all kinds
	Retries         // repeated requests, included in Sent
	Timeouts        // inquiries and connections that ended without an answer
	RefusalsLimited // refusals not sent because of the rate limit
	SendOverflow    // messages not sent because the queue was full
	Unroutable      // messages of Sent without a path to the peer, counted by the owner of QP 1

	counters
)

var counterNames = [counters]string{
	"sidr_requests", "sidr_duplicates", "sidr_no_listener", "sidr_bad_address", "sidr_backlog_full", "sidr_replies",
	"connection_requests", "connection_duplicates", "connection_backlog_full", "connection_messages",
	"connections_rejected", "stale_connections", "disconnects_confirmed", "paths_refused", "unsupported", "stray", "unknown", "bad_version", "bad_length",
	"sent", "retries", "timeouts", "refusals_limited", "send_overflow", "unroutable",
}

// String is the counter's name.
func (c Counter) String() string { return counterNames[c] }

// Counters holds the counts of a manager.
type Counters [counters]uint64

// Counters returns the current counts.
func (m *Manager) Counters() Counters { return m.counters }
