// SPDX-License-Identifier: Apache-2.0

// Package structure has no code: its tests hold the project to its architecture. They check which package may
// import which, commands too (structure_test.go), where unsafe may be, that what a public package exports has a
// caller (exported_test.go), that documents name what exists (documents_test.go), that texts
// have no wrong expression (language_test.go), and what each name of the documents
// that we follow is here, with its test (behaviour_test.go).
package structure
