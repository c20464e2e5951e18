// SPDX-License-Identifier: Apache-2.0

package provider

// SRQInitAttr are the attributes of a new SRQ (ibv_srq_init_attr). A new SRQ has no limit: see Modify.
type SRQInitAttr struct {
	MaxWR  uint32
	MaxSGE uint32 // 0 means 1
}
