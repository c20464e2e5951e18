package ring

// CMEventType is what has happened to an id of the connection manager (rdma_cm_event_type).
type CMEventType uint8

// The events.
const (
	CMEventAddrResolved    CMEventType = 0
	CMEventAddrError       CMEventType = 1
	CMEventRouteResolved   CMEventType = 2
	CMEventRouteError      CMEventType = 3
	CMEventConnectRequest  CMEventType = 4
	CMEventConnectResponse CMEventType = 5
	CMEventConnectError    CMEventType = 6
	CMEventUnreachable     CMEventType = 7
	CMEventRejected        CMEventType = 8
	CMEventEstablished     CMEventType = 9
	CMEventDisconnected    CMEventType = 10
	CMEventDeviceRemoval   CMEventType = 11
	CMEventMulticastJoin   CMEventType = 12
	CMEventMulticastError  CMEventType = 13
	CMEventAddrChange      CMEventType = 14
	CMEventTimewaitExit    CMEventType = 15
)

// IDOption is what can be set of an id (RDMA_OPTION_ID_*).
type IDOption uint8

// The options.
const (
	IDOptionTOS       IDOption = 0 // type of service: the traffic class of what is sent
	IDOptionReuseAddr IDOption = 1
	IDOptionAFOnly    IDOption = 2
)
