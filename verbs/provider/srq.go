package provider

// SRQInitAttr are the attributes that an SRQ is created with (ibv_srq_init_attr). It has no limit at
// first: see Modify.
type SRQInitAttr struct {
	MaxWR  uint32
	MaxSGE uint32 // 0 stands for 1
}

// SRQAttr are the attributes of an SRQ (ibv_srq_attr).
type SRQAttr struct {
	MaxWR  uint32 // receives that can wait
	MaxSGE uint32 // of a receive; fixed when the SRQ is created
	Limit  uint32 // receives; 0: none is armed
}
