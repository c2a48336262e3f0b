package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"path"
	"strings"
)

//go:embed static
var staticFiles embed.FS

// Asset is one file that pages load. Its path names its content, so that a browser
// may keep it for ever.
type Asset struct {
	Path      string
	Type      string // media type
	Integrity string // for the attribute integrity
	Body      []byte
	Gzip      []byte // the same, compressed
}

// StaticPrefix is where the assets stand.
const StaticPrefix = "/static/"

func asset(file, mediaType string) Asset {
	body, err := staticFiles.ReadFile("static/" + file)
	if err != nil {
		panic("a file of the pages is not embedded: " + err.Error())
	}
	sum := sha256.Sum256(body)
	extension := path.Ext(file)
	name := strings.TrimSuffix(path.Base(file), extension) + "-" + hex.EncodeToString(sum[:8]) + extension
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is a known one
	_, _ = w.Write(body)                                       // a buffer takes everything
	_ = w.Close()
	return Asset{Path: StaticPrefix + name, Type: mediaType, Integrity: "sha256-" + base64.StdEncoding.EncodeToString(sum[:]),
		Body: body, Gzip: packed.Bytes()}
}

const (
	typeScript = "text/javascript; charset=utf-8"
	typeStyle  = "text/css; charset=utf-8"
)

var (
	style = asset("style.css", typeStyle)
	icon  = asset("icon.svg", "image/svg+xml")
	// scripts are loaded in this order: the extension finds htmx there.
	scripts = []Asset{
		asset("vendor/htmx-4.0.1.min.js", typeScript),
		asset("vendor/hx-sse-4.0.1.min.js", typeScript),
		asset("inbox.js", typeScript),
	}
)

// Assets lists everything that pages load.
func Assets() []Asset { return append([]Asset{style, icon}, scripts...) }
