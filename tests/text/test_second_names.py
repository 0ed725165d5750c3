"""What a code from ISO 639 or from another program means to a model that has NLLB-200's codes, or M2M-100's."""

import re

import pytest
from rows import each_row

from tolka.errors import ConfigError
from tolka.text.new_languages import check_new_languages, code_hint, equivalent_codes
from tolka.tokenizer.language_tags import check_known

# Codes of NLLB-200 (FLORES-200) -> what people type for it.
MEANT = {
    "als_Latn": "sqi_Latn sq",
    "arb_Arab": "ara_Arab ar ar_AR",
    "ayr_Latn": "aym_Latn",
    "azb_Arab": "az_Arab az-IR",
    "azj_Latn": "aze_Latn az",
    "bho_Deva": "bho bh",
    "bos_Latn hrv_Latn": "sh hbs_Latn",
    "ckb_Arab": "ku_Arab",
    "deu_Latn": "ger_Latn de-CH de_DE",
    "dik_Latn": "din_Latn",
    "eng_Latn": "en_XX en-GB",
    "est_Latn": "ekk_Latn",
    "fra_Latn": "fre_Latn",
    "fuv_Latn": "ful_Latn ff",
    "gaz_Latn": "orm_Latn om",
    "heb_Hebr": "iw",
    "hrv_Latn": "hr",
    "ind_Latn": "in",
    "jav_Latn": "jv jw",
    "khk_Cyrl": "mon_Cyrl mn",
    "kmr_Latn": "kur_Latn ku",
    "lvs_Latn": "lav_Latn lv",
    "nno_Latn": "nn_NO",
    "nob_Latn": "nor_Latn no nb nb-NO",
    "npi_Deva": "nep_Deva ne",
    "ory_Orya": "ori_Orya or",
    "pbt_Arab": "pus_Arab ps",
    "pes_Arab": "fas_Arab fa per_Arab fa_IR",
    "plt_Latn": "mlg_Latn mg",
    "por_Latn": "pt-BR pt_XX",
    "prs_Arab": "prs fa-AF",
    "quy_Latn": "que_Latn qu",
    "ron_Latn": "rum_Latn mo",
    "srp_Cyrl": "sr",
    "swh_Latn": "swa_Latn sw",
    "tgl_Latn": "fil_Latn tl",
    "twi_Latn": "tw",
    "uzn_Latn": "uzb_Latn uz",
    "ydd_Hebr": "yid_Hebr yi ji",
    "yue_Hant": "yue zh-yue",
    "zho_Hans": "cmn_Hans zh chi_Hans zh_CN zho_simpl zh-cmn-Hans",
    "zho_Hant": "zh-TW zh-HK zho_trad",
    "zsm_Latn": "msa_Latn ms",
}
NEIGHBOURS = ["aka_Latn", "arz_Arab", "bjn_Arab", "cat_Latn", "crh_Latn", "kon_Latn", "ltg_Latn", "mkd_Cyrl"]
NEIGHBOURS += ["grn_Latn", "min_Latn", "slv_Latn", "spa_Latn", "tur_Latn", "yor_Latn"]
NLLB = sorted({*NEIGHBOURS, *" ".join(MEANT).split()})
M2M = {"arb": "ar", "azj": "az", "pes": "fa", "lvs": "lv", "plt": "mg", "khk": "mn", "zsm": "ms", "npi": "ne"}
M2M |= {"nob": "no", "nso": "ns", "als": "sq", "swh": "sw", "fil": "tl", "uzn": "uz", "ydd": "yi", "cmn": "zh"}


def test_another_code_of_a_language_is_refused_with_that_of_the_model() -> None:
    for right, codes in MEANT.items():
        said = re.escape(f"Did you mean {' or '.join(map(repr, right.split()))}?")
        for code in codes.split():
            with pytest.raises(ConfigError, match=f"'{code}'.*{said}"):
                check_new_languages([code], NLLB, "")
            with pytest.raises(ConfigError, match=f"'{code}'.*{said}"):
                check_known("target", code, NLLB)


@each_row("code", ["lat_Latn", "kok_Deva", "doi_Deva", "zho_Latn", "srp_Latn", "swc_Latn", "tyv_Cyrl"])
def test_a_language_that_the_model_lacks_is_new(code: str) -> None:
    check_new_languages([code], NLLB, "")


def test_a_member_of_a_macrolanguage_is_another_language_than_its_neighbour() -> None:
    without = [code for code in NLLB if code not in ("prs_Arab", "arz_Arab", "nno_Latn", "yue_Hant")]
    check_new_languages(["prs_Arab", "arz_Arab", "nno_Latn", "yue_Hant"], without, "")


def test_corpus_like_adds_what_only_looks_like_a_second_name() -> None:
    with pytest.raises(ConfigError, match=r"another language than that, .*corpus\.like=als_Latn$"):
        check_new_languages(["sqi_Latn"], NLLB, "")
    check_new_languages(["sqi_Latn"], NLLB, "als_Latn")
    with pytest.raises(ConfigError, match=r"'als_Latn'\?$"):  # mt-train import has no such setting
        check_new_languages(["sqi_Latn"], NLLB)


def test_models_by_macrolanguage_know_their_usual_member() -> None:
    assert {code: equivalent_codes(code, M2M.values()) for code in M2M} == {code: [own] for code, own in M2M.items()}
    assert equivalent_codes("deu_Latn", ["de_DE", "en_XX"]) == ["de_DE"]  # mBART's


def test_a_real_code_is_not_guessed_by_its_letters() -> None:
    assert code_hint("lat_Latn", ["lao_Laoo", "slv_Latn"]) == " Known: lao_Laoo, slv_Latn."
    assert code_hint("deu_Latm", ["deu_Latn", "slv_Latn"]) == " Did you mean 'deu_Latn'?"
