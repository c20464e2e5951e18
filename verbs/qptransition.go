// SPDX-License-Identifier: Apache-2.0

package verbs

// transition is a change of a queue pair's state.
type transition struct{ from, to QPState }

// rule is the attributes that a change of state needs, and those that it may set.
type rule struct{ required, optional QPAttrMask }

// qpTypes are all types. Raw IPv6 and raw Ethertype have no rule in any change.
var qpTypes = []QPType{
	QPTypeSMI, QPTypeGSI, QPTypeRC, QPTypeUC, QPTypeUD, QPTypeRawIPv6, QPTypeRawEthertype, QPTypeRawPacket,
	QPTypeXRCSend, QPTypeXRCRecv,
}

// Groups of attributes.
const (
	attrsOfDatagrams = QPAttrPKeyIndex | QPAttrQKey
	attrsOfConnected = QPAttrPKeyIndex | QPAttrPort | QPAttrAccessFlags
	attrsOfPeer      = QPAttrAV | QPAttrPathMTU | QPAttrDestQPN | QPAttrRQPSN
	attrsOfRetries   = QPAttrTimeout | QPAttrRetryCnt | QPAttrRNRRetry
	attrsToResponder = QPAttrMaxDestRDAtomic | QPAttrMinRNRTimer
	attrsOfMigration = QPAttrAltPath | QPAttrAccessFlags | QPAttrPathMigState
	attrsOfRTS       = QPAttrCurState | attrsOfMigration // of a connected queue pair that goes to RTS
)

// transitions are the changes of state that have attributes, by type (IBA 11.2.5.2, table 91; the optional ones are
// those of the kernel's qp_state_table). A type without a rule in a change can only specify the state. The changes of
// alwaysAllowed are not listed. No other changes exist.
var transitions = map[transition]map[QPType]rule{
	{QPStateReset, QPStateInit}: {
		QPTypeSMI:       {required: attrsOfDatagrams},
		QPTypeGSI:       {required: attrsOfDatagrams},
		QPTypeUD:        {required: attrsOfDatagrams | QPAttrPort},
		QPTypeRawPacket: {required: QPAttrPort},
		QPTypeUC:        {required: attrsOfConnected},
		QPTypeRC:        {required: attrsOfConnected},
		QPTypeXRCSend:   {required: attrsOfConnected},
		QPTypeXRCRecv:   {required: attrsOfConnected},
	},
	{QPStateInit, QPStateInit}: {
		QPTypeSMI:     {optional: attrsOfDatagrams},
		QPTypeGSI:     {optional: attrsOfDatagrams},
		QPTypeUD:      {optional: attrsOfDatagrams | QPAttrPort},
		QPTypeUC:      {optional: attrsOfConnected},
		QPTypeRC:      {optional: attrsOfConnected},
		QPTypeXRCSend: {optional: attrsOfConnected},
		QPTypeXRCRecv: {optional: attrsOfConnected},
	},
	{QPStateInit, QPStateRTR}: {
		QPTypeSMI:     {optional: attrsOfDatagrams},
		QPTypeGSI:     {optional: attrsOfDatagrams},
		QPTypeUD:      {optional: attrsOfDatagrams},
		QPTypeUC:      {attrsOfPeer, QPAttrAltPath | QPAttrAccessFlags | QPAttrPKeyIndex},
		QPTypeRC:      {attrsOfPeer | attrsToResponder, QPAttrAltPath | QPAttrAccessFlags | QPAttrPKeyIndex},
		QPTypeXRCSend: {attrsOfPeer, QPAttrAltPath | QPAttrAccessFlags | QPAttrPKeyIndex},
		QPTypeXRCRecv: {attrsOfPeer | attrsToResponder, QPAttrAltPath | QPAttrAccessFlags | QPAttrPKeyIndex},
	},
	{QPStateRTR, QPStateRTS}: {
		QPTypeSMI:       {QPAttrSQPSN, QPAttrCurState | QPAttrQKey},
		QPTypeGSI:       {QPAttrSQPSN, QPAttrCurState | QPAttrQKey},
		QPTypeUD:        {QPAttrSQPSN, QPAttrCurState | QPAttrQKey},
		QPTypeRawPacket: {optional: QPAttrRateLimit},
		QPTypeUC:        {QPAttrSQPSN, attrsOfRTS},
		QPTypeRC:        {QPAttrSQPSN | attrsOfRetries | QPAttrMaxQPRDAtomic, attrsOfRTS | QPAttrMinRNRTimer},
		QPTypeXRCSend:   {QPAttrSQPSN | attrsOfRetries | QPAttrMaxQPRDAtomic, attrsOfRTS},
		QPTypeXRCRecv:   {QPAttrSQPSN | QPAttrTimeout, attrsOfRTS | QPAttrMinRNRTimer},
	},
	{QPStateRTS, QPStateRTS}: {
		QPTypeSMI:       {optional: QPAttrCurState | QPAttrQKey},
		QPTypeGSI:       {optional: QPAttrCurState | QPAttrQKey},
		QPTypeUD:        {optional: QPAttrCurState | QPAttrQKey},
		QPTypeRawPacket: {optional: QPAttrRateLimit},
		QPTypeUC:        {optional: attrsOfRTS},
		QPTypeRC:        {optional: attrsOfRTS | QPAttrMinRNRTimer},
		QPTypeXRCSend:   {optional: attrsOfRTS},
		QPTypeXRCRecv:   {optional: attrsOfRTS | QPAttrMinRNRTimer},
	},
	{QPStateRTS, QPStateSQD}: {
		QPTypeSMI:     {optional: QPAttrEnSQDAsyncNotify},
		QPTypeGSI:     {optional: QPAttrEnSQDAsyncNotify},
		QPTypeUD:      {optional: QPAttrEnSQDAsyncNotify},
		QPTypeUC:      {optional: QPAttrEnSQDAsyncNotify},
		QPTypeRC:      {optional: QPAttrEnSQDAsyncNotify},
		QPTypeXRCSend: {optional: QPAttrEnSQDAsyncNotify},
		QPTypeXRCRecv: {optional: QPAttrEnSQDAsyncNotify},
	},
	{QPStateSQD, QPStateRTS}: {
		QPTypeSMI:     {optional: QPAttrCurState | QPAttrQKey},
		QPTypeGSI:     {optional: QPAttrCurState | QPAttrQKey},
		QPTypeUD:      {optional: QPAttrCurState | QPAttrQKey},
		QPTypeUC:      {optional: attrsOfRTS},
		QPTypeRC:      {optional: attrsOfRTS | QPAttrMinRNRTimer},
		QPTypeXRCSend: {optional: attrsOfRTS},
		QPTypeXRCRecv: {optional: attrsOfRTS | QPAttrMinRNRTimer},
	},
	{QPStateSQD, QPStateSQD}: {
		QPTypeSMI: {optional: attrsOfDatagrams},
		QPTypeGSI: {optional: attrsOfDatagrams},
		QPTypeUD:  {optional: attrsOfDatagrams},
		QPTypeUC:  {optional: QPAttrAV | QPAttrPKeyIndex | attrsOfMigration},
		QPTypeRC: {optional: QPAttrAV | QPAttrPKeyIndex | QPAttrPort | attrsOfMigration |
			attrsOfRetries | QPAttrMaxQPRDAtomic | attrsToResponder},
		QPTypeXRCSend: {optional: QPAttrAV | QPAttrPKeyIndex | QPAttrPort | attrsOfMigration |
			attrsOfRetries | QPAttrMaxQPRDAtomic},
		QPTypeXRCRecv: {optional: QPAttrAV | QPAttrPKeyIndex | QPAttrPort | attrsOfMigration |
			QPAttrTimeout | attrsToResponder},
	},
	{QPStateSQE, QPStateRTS}: {
		QPTypeSMI: {optional: QPAttrCurState | QPAttrQKey},
		QPTypeGSI: {optional: QPAttrCurState | QPAttrQKey},
		QPTypeUD:  {optional: QPAttrCurState | QPAttrQKey},
		QPTypeUC:  {optional: QPAttrCurState | QPAttrAccessFlags},
	},
}
