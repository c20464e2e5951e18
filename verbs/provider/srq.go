package provider

// SRQInitAttr are the attributes that an SRQ is created with (ibv_srq_init_attr). It has no limit at
// first: see Modify.
type SRQInitAttr struct {
	MaxWR  uint32
	MaxSGE uint32 // 0 stands for 1
}
