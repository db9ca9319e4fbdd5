package inspector

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

//go:embed wasm
var wasm embed.FS

// starter starts programs of Go in a browser.
//
//go:embed wasm/wasm_exec.js
var starter []byte

// programBytesMax is the largest program, uncompressed.
const programBytesMax = 256 << 20

// Program is the program with which a page folds sessions again: cmd/prove as WebAssembly.
type Program struct {
	Compressed []byte // with gzip
	Hash       string // SHA-256 of the program, uncompressed, in hex
}

// ReadProgram returns a program from the bytes of a file, which may be compressed with
// gzip.
func ReadProgram(file []byte) (*Program, error) {
	p := &Program{Compressed: file}
	raw := file
	if bytes.HasPrefix(file, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(file))
		if err == nil {
			raw, err = io.ReadAll(io.LimitReader(z, programBytesMax))
		}
		if err != nil {
			return nil, fmt.Errorf("the file can't be decompressed: %w", err)
		}
	}
	if !bytes.HasPrefix(raw, []byte("\x00asm")) {
		return nil, errors.New("the file is no WebAssembly: make wasm writes internal/inspector/wasm/prove.wasm.gz")
	}
	sum := sha256.Sum256(raw)
	p.Hash = hex.EncodeToString(sum[:])
	if len(raw) == len(file) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(raw) // to memory
		_ = z.Close()
		p.Compressed = b.Bytes()
	}
	return p, nil
}

// Built returns the program that this build has inside; nil: it has none, since make wasm
// did not run before it.
var Built = sync.OnceValue(func() *Program {
	file, err := wasm.ReadFile("wasm/prove.wasm.gz")
	if err != nil {
		return nil
	}
	p, err := ReadProgram(file)
	if err != nil {
		return nil
	}
	return p
})

// WorkerName is the asset that a page starts as the worker.
const WorkerName = "worker.js"

// WorkerPolicy is the Content-Security-Policy of the worker: it may compile WebAssembly,
// which no page may, and ask nobody for anything.
const WorkerPolicy = "default-src 'none'; script-src 'wasm-unsafe-eval'; require-trusted-types-for 'script'; trusted-types 'none'"

// Worker returns the worker's script: Go's own, and static/prove_worker.js.
func Worker() []byte {
	own, _ := static.ReadFile("static/prove_worker.js") // an embedded file can be read
	return slices.Concat(starter, []byte("\n"), own)
}
