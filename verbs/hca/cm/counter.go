package cm

// Counter is something that a manager counts. Each datagram that Receive takes is counted once, by one
// of the first group. To the card it was delivered, also if it is dropped here.
type Counter uint8

// The counters.
const (
	Requests              Counter = iota // requests for datagram services that a listener took
	Duplicates                           // retries of such a request
	NoListener                           // requests that nobody listens for, refused
	BadAddress                           // requests with an address header that is not understood or not true, refused
	BacklogFull                          // requests that found no room at the listener, dropped
	Replies                              // replies to an inquiry
	ConnectionRequests                   // requests for connections that a listener took
	ConnectionDuplicates                 // messages of connections that had arrived before
	ConnectionBacklogFull                // requests for connections that found no room at the listener, dropped
	ConnectionMessages                   // answers and ends of connections that are here
	ConnectionsRejected                  // requests for connections, refused
	StaleConnections                     // requests and replies of a queue pair that a connection here has already, refused
	DisconnectsConfirmed                 // ends of connections that are not there, confirmed
	PathsRefused                         // alternate paths for connections, refused
	Unsupported                          // Get and Set of any class, refused
	Stray                                // answers to what was not asked, or not any more
	Unknown                              // other methods, attributes and classes, dropped
	BadVersion                           // versions that are not known; refused where there is a message for it
	BadLength                            // not the length of a MAD, dropped

	Sent            // messages of all kinds
	Retries         // of these, requests that were repeated
	Timeouts        // inquiries and connections that ended without an answer
	RefusalsLimited // refusals that were not sent, because there were many
	SendOverflow    // messages that were not sent, because many waited
	Unroutable      // messages of Sent that have no way to the peer; the owner of QP 1 counts them

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

// Counters are all of a manager's.
type Counters [counters]uint64

// Counters gives the counters as they are.
func (m *Manager) Counters() Counters { return m.counters }
