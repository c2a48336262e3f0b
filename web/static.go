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

// asset makes an asset of one or more files of static, in their order.
func asset(name, mediaType string, files ...string) Asset {
	var body []byte
	for _, file := range files {
		part, err := staticFiles.ReadFile("static/" + file)
		if err != nil {
			panic("a file of the pages is not embedded: " + err.Error())
		}
		body = append(append(body, part...), '\n')
	}
	sum := sha256.Sum256(body)
	extension := path.Ext(name)
	name = strings.TrimSuffix(name, extension) + "-" + hex.EncodeToString(sum[:8]) + extension
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
	style = asset("style.css", typeStyle, "style.css")
	icon  = asset("icon.svg", "image/svg+xml", "icon.svg")
	// The scripts are one file, so that htmx never begins before its extension is there.
	script = asset("inbox.js", typeScript, "vendor/htmx-4.0.1.min.js", "vendor/hx-sse-4.0.1.min.js", "inbox.js")
)

// Assets lists everything that pages load.
func Assets() []Asset { return []Asset{style, icon, script} }
