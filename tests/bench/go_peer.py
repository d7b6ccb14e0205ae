"""The peer of the provider benchmarks: a provider of one small resource on the usual Go framework, built in a temporary folder."""
import pathlib
import shutil
import subprocess
import sys

MOD = """module example.com/peer

go 1.22

require github.com/hashicorp/terraform-plugin-framework v1.19.0
"""

# peer_thing keeps what it is given and does no work of its own, so that what is measured is the framework.
MAIN = """package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
)

type peer struct{}

func (peer) Metadata(_ context.Context, _ provider.MetadataRequest, r *provider.MetadataResponse) {
	r.TypeName = "peer"
}
func (peer) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse)          {}
func (peer) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}
func (peer) DataSources(context.Context) []func() datasource.DataSource                        { return nil }
func (peer) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return thing{} }}
}

type thing struct{}

func (thing) Metadata(_ context.Context, _ resource.MetadataRequest, r *resource.MetadataResponse) {
	r.TypeName = "peer_thing"
}
func (thing) Schema(_ context.Context, _ resource.SchemaRequest, r *resource.SchemaResponse) {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	r.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":   schema.StringAttribute{Computed: true, PlanModifiers: keep},
		"path": schema.StringAttribute{Required: true},
		"text": schema.StringAttribute{Required: true},
	}}
}
func (thing) Create(ctx context.Context, q resource.CreateRequest, r *resource.CreateResponse) {
	r.State.Raw = q.Plan.Raw
	r.Diagnostics.Append(r.State.SetAttribute(ctx, path.Root("id"), "x")...)
}
func (thing) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}
func (thing) Update(_ context.Context, q resource.UpdateRequest, r *resource.UpdateResponse) {
	r.State.Raw = q.Plan.Raw
}
func (thing) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

func main() {
	providerserver.Serve(context.Background(), func() provider.Provider { return peer{} },
		providerserver.ServeOpts{Address: "example.com/peer/peer"})
}
"""


def build(folder: pathlib.Path):
    """Builds it in `folder` (needs go and its module proxy). -> the program's path, or None with the reason on stderr."""
    if shutil.which("go") is None:
        print("no peer: go is not on PATH", file=sys.stderr)
        return None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text(MOD)
    (folder / "main.go").write_text(MAIN)
    program = folder / "terraform-provider-peer"
    for command in (["go", "mod", "tidy"], ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(program), "."]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
        if done.returncode != 0:
            print(f"no peer: {' '.join(command)} failed: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return None
    return program
