// SPDX-License-Identifier: Apache-2.0

package provider

import "github.com/roced/roced/verbs/ib"

// The commands that query the card and its port.
var (
	QueryDevice   = command[None, ib.DeviceAttr](16, "query_device")
	QueryPort     = command[QueryPortRequest, ib.PortAttr](17, "query_port")
	QueryGIDTable = command[QueryGIDTableRequest, QueryGIDTableGrant](18, "query_gid_table")
	QueryPKey     = command[QueryPKeyRequest, QueryPKeyGrant](19, "query_pkey")
	QueryRTValues = command[None, ib.RTValues](22, "query_rt_values")
)

// The commands on protection domains.
var (
	AllocPD   = command[None, AllocPDGrant](32, "alloc_pd")
	DeallocPD = freeing[DeallocPDRequest](33, "dealloc_pd")
)

// The commands on memory regions, device memory and memory windows.
var (
	// AllocMR allocates memory that both the program and the card can access, and registers it.
	AllocMR = command[AllocMRRequest, MRGrant](34, "alloc_mr")
	// RegMR registers the caller's memory; ErrUnsupported if the card cannot access it.
	RegMR = command[RegMRRequest, MRGrant](44, "reg_mr")
	// ReregMR changes a region between two requests that use it. If it fails, the region is unchanged.
	ReregMR = command[ReregMRRequest, None](36, "rereg_mr")
	// DeregMR returns ErrBusy for a region with bound windows, as ReregMR does.
	DeregMR = freeing[DeregMRRequest](35, "dereg_mr")

	// AllocNullMR allocates a region without memory, for which ReregMR returns ErrInvalid.
	AllocNullMR = command[AllocNullMRRequest, MRGrant](42, "alloc_null_mr")

	// AllocFastMR allocates a free region: requests of the program, or MapFMR, register it.
	AllocFastMR = command[AllocFastMRRequest, MRGrant](46, "alloc_fast_mr")
	// MapFMR registers a fast region in any state, and UnmapFMR frees it. Old keys are invalid when they return.
	MapFMR   = command[MapFMRRequest, None](53, "map_fmr")
	UnmapFMR = command[UnmapFMRRequest, None](54, "unmap_fmr")
	// CheckMRStatus returns whether a check of signatures has failed since the region was registered or checked.
	CheckMRStatus = command[CheckMRStatusRequest, CheckMRStatusGrant](55, "check_mr_status")
	// AllocCoherent allocates memory that is a region of no PD.
	AllocCoherent = command[AllocCoherentRequest, MRGrant](47, "alloc_coherent")

	// AllocDM allocates device memory, and RegDMMR a region of a part of it, whose grant has no memory over the
	// service.
	AllocDM = command[AllocDMRequest, AllocDMGrant](39, "alloc_dm")
	RegDMMR = command[RegDMMRRequest, MRGrant](41, "reg_dm_mr")
	// FreeDM returns ErrBusy for memory that has regions.
	FreeDM = freeing[FreeDMRequest](40, "free_dm")

	AllocMW   = command[AllocMWRequest, AllocMWGrant](37, "alloc_mw")
	DeallocMW = freeing[DeallocMWRequest](38, "dealloc_mw")
)

// The commands on completion channels and completion queues.
var (
	CreateCompChannel  = command[None, CreateCompChannelGrant](56, "create_comp_channel")
	DestroyCompChannel = freeing[DestroyCompChannelRequest](57, "destroy_comp_channel")

	CreateCQ = command[CreateCQRequest, CreateCQGrant](48, "create_cq")
	// ResizeCQ switches the card to a new queue. The old one keeps its completions and stays readable until the next
	// ResizeCQ or DestroyCQ of the CQ, by which the program reports that it has read it to the end. A Provider whose
	// queues are in shared memory unmaps or reuses it then, not before.
	ResizeCQ = command[ResizeCQRequest, ResizeCQGrant](50, "resize_cq")
	ModifyCQ = command[ModifyCQRequest, None](51, "modify_cq")
	// CheckCQ sends the events that an armed CQ owes for unread completions, including those older than the arming.
	CheckCQ   = command[CheckCQRequest, None](52, "check_cq")
	DestroyCQ = freeing[DestroyCQRequest](49, "destroy_cq")
)

// The commands on shared receive queues.
var (
	CreateSRQ = command[CreateSRQRequest, CreateSRQGrant](72, "create_srq")
	// ModifySRQ makes all of the changes or none.
	ModifySRQ  = command[ModifySRQRequest, ModifySRQGrant](73, "modify_srq")
	QuerySRQ   = command[QuerySRQRequest, QuerySRQGrant](74, "query_srq")
	DestroySRQ = freeing[DestroySRQRequest](75, "destroy_srq")
)

// The commands on queue pairs.
var (
	CreateQP  = command[CreateQPRequest, CreateQPGrant](64, "create_qp")
	ModifyQP  = command[ModifyQPRequest, ModifyQPGrant](65, "modify_qp")
	QueryQP   = command[QueryQPRequest, QueryQPGrant](66, "query_qp")
	DestroyQP = freeing[DestroyQPRequest](67, "destroy_qp")
)

// The commands on counters of queue pairs.
var (
	CreateCounters  = command[None, CreateCountersGrant](84, "create_counters")
	AttachCounters  = command[AttachCountersRequest, None](85, "attach_counters")
	ReadCounters    = command[ReadCountersRequest, ReadCountersGrant](86, "read_qp_counters")
	DestroyCounters = freeing[DestroyCountersRequest](87, "destroy_counters")
)

// The commands on XRC domains, and on queues that belong to one.
var (
	// OpenXRCD creates a domain, or opens that of the file's inode, which another session of the same user has created.
	// The card identifies the user and the inode itself.
	OpenXRCD = command[OpenXRCDRequest, OpenXRCDGrant](77, "open_xrcd")
	// CloseXRCD returns ErrBusy for a handle by which existing SRQs or queue pairs were created or opened.
	CloseXRCD = freeing[CloseXRCDRequest](78, "close_xrcd")

	// CreateXRCSRQ creates a shared receive queue of type XRC. ModifySRQ, QuerySRQ and DestroySRQ accept it too.
	CreateXRCSRQ = command[CreateXRCSRQRequest, CreateXRCSRQGrant](79, "create_xrc_srq")
	// CreateXRCTarget creates a target queue pair in a domain, and OpenQP opens an existing one. ModifyQP and QueryQP
	// by any of its handles concern the same queue pair. DestroyQP closes a handle, and with the last one the queue
	// pair.
	CreateXRCTarget = command[CreateXRCTargetRequest, OpenQPGrant](68, "create_xrc_target")
	OpenQP          = command[OpenQPRequest, OpenQPGrant](69, "open_qp")
)

// The commands on address handles.
var (
	// CreateAH may wait for a neighbour's response, until ctx is done.
	CreateAH = waiting[CreateAHRequest, CreateAHGrant](80, "create_ah")
	// ModifyAH may wait as CreateAH does. If it fails, the handle is unchanged.
	ModifyAH  = waiting[ModifyAHRequest, None](82, "modify_ah")
	QueryAH   = command[QueryAHRequest, QueryAHGrant](83, "query_ah")
	DestroyAH = freeing[DestroyAHRequest](81, "destroy_ah")
)

// The commands on multicast groups.
var (
	// AttachMcast makes a queue pair receive a group's messages; see QP.AttachMcast.
	AttachMcast = command[McastRequest, None](96, "attach_mcast")
	DetachMcast = freeing[McastRequest](97, "detach_mcast")

	// JoinMulticast creates a membership. The host is a member while there is a full one.
	JoinMulticast  = command[JoinMulticastRequest, JoinMulticastGrant](98, "join_multicast")
	LeaveMulticast = freeing[LeaveMulticastRequest](99, "leave_multicast")
)

// The commands on connection ids (rdma_cm) and channels of their events. The operation that a command begins ends with
// an event. The card checks an id's state, its port and all rules. Package cm describes ids.
var (
	CreateEventChannel = command[None, CreateEventChannelGrant](112, "create_event_channel")
	// DestroyEventChannel returns ErrBusy for a channel that has ids.
	DestroyEventChannel = freeing[DestroyEventChannelRequest](113, "destroy_event_channel")
	// GetCMEvent does not wait.
	GetCMEvent = command[GetCMEventRequest, GetCMEventGrant](114, "get_cm_event")

	CreateID    = command[CreateIDRequest, CreateIDGrant](115, "create_id")
	MigrateID   = command[MigrateIDRequest, None](117, "migrate_id")
	SetIDOption = command[SetIDOptionRequest, None](118, "set_id_option")
	QueryID     = command[QueryIDRequest, QueryIDGrant](119, "query_id")
	// DestroyID cancels the operations in progress, and drops the id's events. When it returns, no more events come.
	DestroyID = freeing[DestroyIDRequest](116, "destroy_id")

	BindID         = command[BindIDRequest, BindIDGrant](120, "bind_id")
	FindRoute      = command[FindRouteRequest, FindRouteGrant](121, "find_route")
	ResolveIDAddr  = command[ResolveIDAddrRequest, None](122, "resolve_id_addr")
	ResolveIDRoute = command[ResolveIDRouteRequest, None](123, "resolve_id_route")
	SetIDPath      = command[SetIDPathRequest, None](133, "set_id_path")
	InitIDQPAttr   = command[InitIDQPAttrRequest, InitIDQPAttrGrant](124, "init_id_qp_attr")

	ListenID     = command[ListenIDRequest, None](125, "listen_id")
	ConnectID    = command[ConnectIDRequest, None](126, "connect_id")
	AcceptID     = command[AcceptIDRequest, None](127, "accept_id")
	RejectID     = command[RejectIDRequest, None](128, "reject_id")
	DisconnectID = command[DisconnectIDRequest, None](129, "disconnect_id")
	NotifyID     = command[NotifyIDRequest, None](130, "notify_id")

	JoinID  = command[JoinIDRequest, None](131, "join_id")
	LeaveID = command[LeaveIDRequest, LeaveIDGrant](132, "leave_id")
)
