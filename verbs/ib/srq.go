package ib

// SRQAttr are the attributes of an SRQ (ibv_srq_attr).
type SRQAttr struct {
	MaxWR  uint32 // receives that can wait
	MaxSGE uint32 // of a receive; fixed when the SRQ is created
	Limit  uint32 // receives; 0: none is armed
}
