"""Encoders of Hugging Face, built from a config, train by the usual script: dict batches and losses of their own."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (make test-torch)")

from torch.utils.data import DataLoader, Dataset  # noqa: E402

from privamp import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
WORDS, PLACES, N = 13, 6, 7
TINY = {
    "vocab_size": WORDS, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12,
    "max_position_embeddings": 10, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_labels": 3,
}  # fmt: skip


class Texts(Dataset):
    """Dicts of word ids, masks and labels, one label a text or one a word."""

    def __init__(self, by_word=False):
        generator = torch.Generator().manual_seed(5)
        self.ids = torch.randint(1, WORDS, (N, PLACES), generator=generator)
        self.mask = (torch.arange(PLACES) < torch.randint(2, PLACES + 1, (N, 1), generator=generator)).long()
        self.labels = torch.randint(0, 3, (N,), generator=generator)
        if by_word:
            self.labels = torch.where(torch.rand(N, PLACES, generator=generator) < 0.5, self.ids, -100)
            self.labels[0] = -100  # a text without a word to guess

    def __len__(self):
        return N

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": self.mask[i], "labels": self.labels[i]}


def bert(kind="BertForSequenceClassification"):
    torch.manual_seed(0)
    return getattr(transformers, kind)(transformers.BertConfig(**TINY)).double()


def private(model, texts, **options):
    trained = [p for p in model.parameters() if p.requires_grad]
    settings = {"sampler": "uniform", "sample_rate": 1.0, "steps": 2, "noise_multiplier": 1e-12, "population": 10}
    settings |= {"criterion": None, "max_grad_norm": 0.5}
    engine = PrivacyEngine(key=seeded_key(1))
    parts = engine.make_private(
        module=model, optimizer=torch.optim.SGD(trained, 0.0), data_loader=DataLoader(texts), **(settings | options)
    )
    return engine, parts


def alone(model, texts, clip=0.5):
    """The sum of clipped gradients of single texts by autograd."""
    trained = [p for p in model.parameters() if p.requires_grad]
    total = 0.0
    for batch in DataLoader(texts):
        loss = model(**batch).loss
        if not torch.isfinite(loss):
            continue  # nothing to guess
        found = torch.autograd.grad(loss, trained, allow_unused=True)
        row = torch.cat(
            [(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(trained, found, strict=True)]
        )
        total = total + row * min(1.0, clip / float(row.norm()))
    return total


def summed(model):
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.requires_grad]) * 10


@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BertForMaskedLM"])
def test_the_usual_script_trains_an_encoder(kind):
    """Position ids are (1, T), the table of words is the exit of the masked model, whose labels are those of words."""
    texts = Texts(by_word=kind == "BertForMaskedLM")
    model = bert(kind)
    truth = alone(model, texts)
    engine, (model, optimizer, criterion, loader) = private(model, texts)
    assert criterion is None
    for batch in loader:
        optimizer.zero_grad()
        loss = model(**batch).loss
        (loss / 1).backward()
        optimizer.step()
        torch.testing.assert_close(summed(model), truth, rtol=1e-8, atol=1e-10)
    engine.train()
    torch.testing.assert_close(summed(model), truth, rtol=1e-8, atol=1e-10)
    assert engine.is_finished
    engine.detach()
    assert model(**next(iter(DataLoader(texts)))).loss.dim() == 0  # as before


def test_adapters_train_alone():
    peft = pytest.importorskip("peft", reason="peft is not installed (make test-torch)")
    model = peft.get_peft_model(bert(), peft.LoraConfig(target_modules=["query", "value"], r=2)).double()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "lora_B" in name:
                p.normal_()
    truth = alone(model, Texts())
    engine, _ = private(model, Texts(), steps=1)
    engine.train()
    assert all("lora" in name for name, _ in engine._run.named_parameters())
    torch.testing.assert_close(summed(model), truth, rtol=1e-8, atol=1e-10)


def test_a_criterion_may_be_given_scores_and_labels():
    texts, model = Texts(), bert()
    truth = alone(model, texts)
    engine, _ = private(model, texts, criterion=torch.nn.CrossEntropyLoss(), steps=1)
    engine.train()
    torch.testing.assert_close(summed(model), truth, rtol=1e-8, atol=1e-10)


def test_checkpointed_activations_give_the_same_sum():
    texts, model = Texts(), bert()
    truth = alone(model, texts)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    engine, _ = private(model, texts, steps=1)
    engine.train()
    torch.testing.assert_close(summed(model), truth, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("label", [3, -7, 2**40])
def test_labels_that_are_no_class_count_as_nothing(label):
    texts, model = Texts(), bert()
    texts.labels[0] = label
    _, (model, optimizer, _, loader) = private(model, texts, steps=1)
    for batch in loader:
        model(**batch).loss.backward()
        optimizer.step()
    few = torch.utils.data.Subset(texts, range(1, N))
    torch.testing.assert_close(summed(model), alone(model, few), rtol=1e-8, atol=1e-10)


class Numbers(Texts):
    """One number a text."""

    def __getitem__(self, i):
        return super().__getitem__(i) | {"labels": self.labels[i].double()}


def test_a_regression_of_one_number_trains():
    """Its loss is of squeezed scores, which have no dimension where a record is alone."""
    torch.manual_seed(0)
    config = transformers.BertConfig(**(TINY | {"num_labels": 1}))
    model, texts = transformers.BertForSequenceClassification(config).double(), Numbers()
    truth = alone(model, texts)
    engine, _ = private(model, texts)
    engine.train(1)
    torch.testing.assert_close(summed(model), truth, rtol=1e-9, atol=1e-10)


@pytest.mark.filterwarnings("ignore")
def test_the_number_of_words_of_a_batch_divides_no_loss(tmp_path):
    """The Trainer counts the words of a batch, and the model would divide every text's loss by their number."""
    pytest.importorskip("accelerate", reason="accelerate is not installed (make test-torch)")
    texts, model = Texts(by_word=True), bert("BertForMaskedLM")
    truth = alone(model, texts)
    _, (model, optimizer, _, loader) = private(model, texts, steps=1)

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return loader

    options = {"max_steps": 1, "max_grad_norm": 0.0, "save_strategy": "no", "report_to": [], "use_cpu": True}
    trainer = Trainer(
        model=model,
        optimizers=(optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer)),
        args=transformers.TrainingArguments(
            output_dir=str(tmp_path), logging_strategy="no", disable_tqdm=True, **options
        ),
    )
    assert trainer.model_accepts_loss_kwargs  # else nothing is tested
    kept = []
    optimizer.register_step_post_hook(lambda *_: kept.append(summed(model)))
    trainer.train()
    torch.testing.assert_close(kept[0], truth, rtol=1e-9, atol=1e-10)


class Narrowed(torch.nn.Module):
    """Runs in bfloat16 by autocast inside its forward pass, as `TrainingArguments(bf16=True)` makes it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.model = transformers.BertForSequenceClassification(transformers.BertConfig(**TINY))

    def forward(self, **batch):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.model(**batch)


def test_autocast_inside_the_model_is_half_precision():
    model, texts = Narrowed(), Texts()
    truth = alone(model, texts)
    engine, _ = private(model, texts, noise_multiplier=1e-9)
    assert not engine._run.recorder.apart
    engine.train(1)
    assert float((summed(model) - truth).norm()) < 0.02 * float(truth.norm())


def test_a_model_without_a_loss_is_told():
    class Silent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Embedding(WORDS, 3)

        def forward(self, input_ids, attention_mask, labels):
            return self.layer(input_ids)

    with pytest.raises(InvalidInput, match="returns its own loss"):
        private(Silent(), Texts())
