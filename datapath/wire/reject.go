// SPDX-License-Identifier: Apache-2.0

package wire

import "strconv"

// String returns the same description as the kernel's rdma_reject_msg.
func (r RejectReason) String() string {
	if int(r) < len(rejectReasons) && rejectReasons[r] != "" {
		return rejectReasons[r]
	}
	return "unrecognized reason " + strconv.Itoa(int(r))
}

// rejectReasons are the descriptions of the kernel's ib_cm_rej_reason, with the numbers of IBA 12.6.7.2.
var rejectReasons = [...]string{
	1: "no QP", 2: "no EEC", 3: "no resources", 4: "timeout", 5: "unsupported request", 6: "invalid communication ID",
	7: "invalid communication instance", 8: "invalid service ID", 9: "invalid transport type", 10: "stale connection",
	11: "RDC does not exist", 12: "invalid GID", 13: "invalid LID", 14: "invalid SL", 15: "invalid traffic class",
	16: "invalid hop limit", 17: "invalid packet rate", 18: "invalid alternate GID", 19: "invalid alternate LID",
	20: "invalid alternate SL", 21: "invalid alternate traffic class", 22: "invalid alternate hop limit",
	23: "invalid alternate packet rate", 24: "port CM redirect", 25: "port redirect", 26: "invalid MTU",
	27: "insufficient responder resources", 28: "consumer defined", 29: "invalid RNR retry",
	30: "duplicate local communication ID", 31: "invalid class version", 32: "invalid flow label",
	33: "invalid alternate flow label", 35: "vendor option is not supported",
}
