//go:build !race

package labtest

// testsAProcessor is the number of parallel tests per processor.
const testsAProcessor = 4
