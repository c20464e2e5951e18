/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "objects.h"

/* The words are those that rdma-core's programs print, and that scripts look for. */

static const char *word(const char *const *words, size_t count, int index, const char *unknown)
{
	return index >= 0 && (size_t)index < count && words[index] ? words[index] : unknown;
}

#define WORD(words, index, unknown) word(words, sizeof(words) / sizeof(words[0]), index, unknown)

const char *ibv_node_type_str(int type)
{
	static const char *const words[] = { [1] = "InfiniBand channel adapter", "InfiniBand switch",
		"InfiniBand router", "iWARP NIC",
		"usNIC", "usNIC UDP", "unspecified" };

	return WORD(words, type, "unknown");
}

const char *ibv_port_state_str(int state)
{
	static const char *const words[] = { "no state change (NOP)", "down", "init", "armed", "active",
		"active defer" };

	return WORD(words, state, "unknown");
}

const char *ibv_event_type_str(int type)
{
	static const char *const words[] = {
		[ROCED_EVENT_CQ_ERR] = "CQ error",
		[ROCED_EVENT_QP_FATAL] = "local work queue catastrophic error",
		[ROCED_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
		[ROCED_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
		[ROCED_EVENT_COMM_EST] = "communication established",
		[ROCED_EVENT_SQ_DRAINED] = "send queue drained",
		[ROCED_EVENT_PATH_MIG] = "path migrated",
		[ROCED_EVENT_PATH_MIG_ERR] = "path migration request error",
		[ROCED_EVENT_DEVICE_FATAL] = "local catastrophic error",
		[ROCED_EVENT_PORT_ACTIVE] = "port active",
		[ROCED_EVENT_PORT_ERR] = "port error",
		[ROCED_EVENT_LID_CHANGE] = "LID change",
		[ROCED_EVENT_PKEY_CHANGE] = "P_Key change",
		[ROCED_EVENT_SM_CHANGE] = "SM change",
		[ROCED_EVENT_SRQ_ERR] = "SRQ catastrophic error",
		[ROCED_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[ROCED_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[ROCED_EVENT_CLIENT_REREGISTER] = "client reregistration",
		[ROCED_EVENT_GID_CHANGE] = "GID table change",
		[ROCED_EVENT_WQ_FATAL] = "WQ fatal",
	};

	return WORD(words, type, "unknown");
}

const char *ibv_wc_status_str(int status)
{
	static const char *const words[] = {
		[ROCED_WC_SUCCESS] = "success",
		[ROCED_WC_LOC_LEN_ERR] = "local length error",
		[ROCED_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[ROCED_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[ROCED_WC_LOC_PROT_ERR] = "local protection error",
		[ROCED_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
		[ROCED_WC_MW_BIND_ERR] = "memory management operation error",
		[ROCED_WC_BAD_RESP_ERR] = "bad response error",
		[ROCED_WC_LOC_ACCESS_ERR] = "local access error",
		[ROCED_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[ROCED_WC_REM_ACCESS_ERR] = "remote access error",
		[ROCED_WC_REM_OP_ERR] = "remote operation error",
		[ROCED_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[ROCED_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[ROCED_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
		[ROCED_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[ROCED_WC_REM_ABORT_ERR] = "aborted error",
		[ROCED_WC_INV_EECN_ERR] = "invalid EE context number",
		[ROCED_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[ROCED_WC_FATAL_ERR] = "fatal error",
		[ROCED_WC_RESP_TIMEOUT_ERR] = "response timeout error",
		[ROCED_WC_GENERAL_ERR] = "general error",
		[ROCED_WC_TM_ERR] = "TM error",
		[ROCED_WC_TM_RNDV_INCOMPLETE] = "TM software rendezvous",
	};

	return WORD(words, status, "unknown");
}
