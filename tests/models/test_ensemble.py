"""The ensemble's arithmetic; the contract of all architectures is tested in tests/contract."""

import torch

from tolka.data.batch import collate
from tolka.models.ensemble import Ensemble
from tolka.models.transformer import TransformerConfig

BATCH = collate([[4, 5, 6], [7]], [[8, 9], [10, 4, 5]])


def test_probabilities_are_the_mean_of_the_members() -> None:
    configs = [TransformerConfig(d_model=16, heads=2, layers=1), TransformerConfig(d_model=24, heads=2, layers=2)]
    members = [config.build(12, 12, shared=True).double().eval() for config in configs]
    ensemble = Ensemble(members).eval()
    with torch.no_grad():
        mean = sum(member.logits(member(BATCH)).softmax(dim=-1) for member in members) / 2
        features = ensemble(BATCH)
        torch.testing.assert_close(ensemble.logits(features).exp(), mean)
    assert features.shape == (BATCH.tokens, ensemble.feature_size) == (BATCH.tokens, 40)


def test_its_parameters_are_those_of_all_members() -> None:
    config = TransformerConfig(d_model=16, heads=2, layers=1)
    members = [config.build(12, 12, shared=True) for _ in range(3)]
    assert Ensemble(members).parameter_count() == 3 * members[0].parameter_count()
    assert len(Ensemble(members).logits_parameters()) == 3 * len(members[0].logits_parameters())
