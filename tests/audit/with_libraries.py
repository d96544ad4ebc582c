# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them, with libraries that do the loop, for `kiln audit`: with_libraries.py NAME [TIMES]."""

import logging
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")


def trainer(times):
    """transformers.Trainer: reads of its own for logging and clipping."""
    import torch
    import transformers

    class words(torch.utils.data.Dataset):
        def __len__(self):
            return 4096

        def __getitem__(self, at):
            ids = torch.full((64,), at % 1000)
            return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.tensor(at % 2)}

    small = transformers.BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=256)
    model = transformers.BertForSequenceClassification(small)
    with tempfile.TemporaryDirectory() as place:
        how = transformers.TrainingArguments(output_dir=place, max_steps=times, logging_steps=10, per_device_train_batch_size=16,
                                             save_strategy="no", report_to=[], disable_tqdm=True)
        transformers.Trainer(model=model, args=how, train_dataset=words()).train()


def compiled(times, mode=None):
    """torch.compile: compilers as processes, then one kernel for many operations; with graphs, launches vanish."""
    import torch

    net = torch.nn.Sequential(*[m for _ in range(8) for m in (torch.nn.Linear(256, 256), torch.nn.GELU())]).cuda()
    step = torch.compile(net, mode=mode)
    data = torch.randn(64, 256, device="cuda")
    with torch.no_grad():
        for _ in range(times):
            step(data)
    torch.cuda.synchronize()
    from torch._dynamo.utils import compile_times

    print("it says:", " ".join(line.strip() for line in compile_times(repr="str").splitlines() if "compile_inner" in line or "GraphLowering.compile_to" in line or "_compile." in line)[:300])


def compiled_graphs(times):
    compiled(times, "reduce-overhead")


def resnet(times, batch=256):
    import torch
    import torchvision

    net = torchvision.models.resnet50(weights=None).cuda().to(torch.bfloat16, memory_format=torch.channels_last).eval()
    data = torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    with torch.no_grad():
        for _ in range(times):
            net(data)
    torch.cuda.synchronize()


def resnet_one(times):
    resnet(times, 1)


def nuts(times):
    """NumPyro: one long compile, then everything on the device."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    def model(x, y):
        slope = numpyro.sample("slope", dist.Normal(0, 1).expand([8]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ slope, 1.0), obs=y)

    x = jax.random.normal(jax.random.PRNGKey(0), (1000, 8))
    chain = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=times, num_samples=times, progress_bar=False)
    chain.run(jax.random.PRNGKey(1), x, x @ jnp.ones(8))
    chain.get_samples()["slope"].block_until_ready()


def lightning(times):
    import lightning
    import torch

    class net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(256, 256)

        def training_step(self, batch, _):
            loss = self.layer(batch).square().mean()
            self.log("loss", loss, prog_bar=True)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    data = torch.utils.data.DataLoader(torch.randn(64 * times, 256), batch_size=64)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    lightning.Trainer(max_steps=times, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False, enable_model_summary=False).fit(net(), data)


def neighbours(times):
    """torch-geometric: neighbours sampled on the host, pageable copies. Its own loader wants pyg-lib or torch-sparse; without them the same by hand."""
    import torch
    import torch_geometric

    nodes, batch_size = 20000, 256
    graph = torch_geometric.data.Data(x=torch.randn(nodes, 64), edge_index=torch.randint(nodes, (2, nodes * 10)), y=torch.zeros(nodes, dtype=torch.long))
    net = torch_geometric.nn.SAGEConv(64, 64).cuda()

    def sampled():
        order = torch.argsort(graph.edge_index[1])
        sources, begins = graph.edge_index[0][order], torch.searchsorted(graph.edge_index[1][order].contiguous(), torch.arange(nodes + 1))
        for seeds in torch.randperm(nodes).split(batch_size):
            edges, known, layer = [], seeds, seeds
            for most in (10, 5):
                counts = begins[layer + 1] - begins[layer]
                picked = begins[layer][:, None] + (torch.rand(len(layer), most) * counts[:, None]).long()
                picked, targets = picked[counts > 0].flatten(), layer[counts > 0].repeat_interleave(most)
                edges.append(torch.stack([sources[picked], targets]))
                layer = sources[picked].unique()
                known = torch.cat([known, layer]).unique()
            places = torch.full((nodes,), -1)
            places[known] = torch.arange(len(known))
            yield torch_geometric.data.Data(x=graph.x[known], edge_index=places[torch.cat(edges, 1)])

    try:
        batches = iter(torch_geometric.loader.NeighborLoader(graph, num_neighbors=[10, 5], batch_size=batch_size))
        first = next(batches)
    except ImportError:
        batches = sampled()
        first = next(batches)
    for batch, _ in zip((b for some in ([first], batches) for b in some), range(times)):
        batch = batch.to("cuda")
        net(batch.x, batch.edge_index).sum().backward()
    torch.cuda.synchronize()


def onnx(times):
    """onnxruntime without its GPU: everything runs, and nothing of it where one thinks."""
    import numpy
    import onnx as format
    import onnxruntime

    value = format.helper.make_tensor_value_info
    weight = format.numpy_helper.from_array(numpy.ones((256, 256), dtype=numpy.float32), "w")
    graph = format.helper.make_graph([format.helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", 1, [64, 256])], [value("y", 1, [64, 256])], [weight])
    model = format.helper.make_model(graph, opset_imports=[format.helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for _ in range(times):
        session.run(None, {"x": numpy.ones((64, 256), dtype=numpy.float32)})


def embeds(times):
    """An encoder in batches, and the result of each to the host: a boundary."""
    import torch
    import transformers

    small = transformers.BertConfig(vocab_size=1000, hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=768)
    net = transformers.BertModel(small).cuda().half().eval()
    out = []
    with torch.no_grad():
        for step in range(times):
            ids = torch.randint(1000, (32, 64), generator=torch.Generator().manual_seed(step)).to("cuda")
            out.append(net(ids).last_hidden_state.mean(1).cpu())


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 100)
    print("done", sys.argv[1])
