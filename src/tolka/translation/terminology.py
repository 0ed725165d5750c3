"""The terms and banned phrases of a request, as subword ids for a search and as text."""

from collections.abc import Sequence
from functools import cache, cached_property

from tolka.search.hypothesis import NO_WISH, Ids, Wish
from tolka.terminology.glossary import Entry, Glossary, Match, Phrases, needs_blank, occurs_in
from tolka.text.casing import capitalized
from tolka.text.characters import KEEP, CharacterForm
from tolka.tokenizer.special_tokens import BOS, UNK
from tolka.tokenizer.tokenizer import Tokenizer

# A tokenizer may spell a term otherwise inside a sentence than alone. It is encoded there after the first of these
# texts whose own subwords do not change by that, and these are removed.
_BEFORE_BLANK, _BEFORE = ("a", "1", ".", "-"), ("(", "“", "。", ".", "-", "、")


class Terminology:
    """A glossary, phrases that translations must not contain, and the tokenizer that spells them."""

    def __init__(
        self, entries: Sequence[Entry], banned: Sequence[str], tokenizer: Tokenizer, characters: CharacterForm = KEEP
    ) -> None:
        """characters: their form in the model's training text."""
        self.terms, self.characters = (entries, banned), characters
        self._tokenizer = tokenizer
        self._glossary = Glossary(entries, characters)
        self._phrases = list(map(characters.target, banned))
        # Terms repeat from text to text.
        self._forms, self._alternatives = cache(self._forms_of), cache(self._alternatives_of)

    def matches(self, text: str) -> tuple[Match, ...]:
        """Return the glossary's terms that stand in a source text."""
        return tuple(self._glossary.matches(text)) if self.terms[0] else ()

    def wish(self, matches: Sequence[Match]) -> Wish:
        """Return the constraints for a translation with these terms, except those that the tokenizer cannot spell."""
        terms = tuple(ids for match in matches if (ids := self._alternatives(match.targets)))
        return Wish(terms=terms, banned=self._banned_ids) if terms or self._banned_ids else NO_WISH

    def complaints(
        self, translation: str, segments: Sequence[tuple[Sequence[Match], str]]
    ) -> tuple[list[str], list[str]]:
        """Return the terms that a translation lacks and the banned phrases that it has.

        segments: (terms of the glossary in it, its translation) of each.
        """
        # A term counts only in the translation of its own segment.
        return [term for each in segments for term in self.missing(*each)], self.banned_phrases(translation)

    def missing(self, matches: Sequence[Match], translation: str) -> list[str]:
        """Return the terms of which no form stands in a text, each as its first form."""
        return [
            match.targets[0] for match in matches if not any(self._has(translation, form) for form in match.targets)
        ]

    def banned_phrases(self, translation: str) -> list[str]:
        """Return the banned phrases in a text."""
        phrases, of_form = self._banned_forms
        numbers = {number for form in phrases.occurrences(translation) for number in of_form[form]}
        return [self._phrases[number] for number in sorted(numbers)]

    def banned_spellings(self, translation: str, ids: Sequence[int]) -> tuple[Ids, ...]:
        """Return the ids that spell banned phrases in a translation. ids: of the translation.

        They may be other subwords than the tokenizer's own, which are all that the constraints of a search have.
        """
        return tuple(self._spelling_in(phrase, ids) for phrase in self.banned_phrases(translation))

    def _spelling_in(self, phrase: str, ids: Sequence[int]) -> Ids:
        """Return the shortest part of the ids whose text has the phrase, at its first occurrence."""
        forms = Phrases(self._with_capitals(phrase))
        # First the earliest end, then the latest start: there is no map from characters to subwords.
        end = next(end for end in range(1, len(ids) + 1) if forms.occurrences(self._decode(ids[:end])))
        start = next(start for start in range(end - 1, -1, -1) if forms.occurrences(self._decode(ids[start:end])))
        return tuple(ids[start:end])

    @cached_property
    def _banned_forms(self) -> tuple[Phrases, dict[str, list[int]]]:
        """All forms of all banned phrases, and for each form the numbers of its phrases."""
        of_form: dict[str, list[int]] = {}
        for number, phrase in enumerate(self._phrases):
            for form in self._with_capitals(phrase):
                of_form.setdefault(form, []).append(number)
        return Phrases(of_form), of_form

    def _with_capitals(self, phrase: str) -> list[str]:
        """Return the forms of a phrase in a text, without and with a capital letter."""
        return list(dict.fromkeys(form for each in self._forms(phrase) for form in (each, self._capitalized(each))))

    def _forms_of(self, form: str) -> tuple[str, ...]:
        """Return a form as it is given and, where that differs, as the tokenizer decodes it."""
        ids = self._encode(form)
        # A tokenizer may normalise (NFKC); with an unknown subword the decoded text is another one.
        return tuple(dict.fromkeys((form, self._decode(ids) if ids and UNK not in ids else form)))

    def _has(self, text: str, form: str) -> bool:
        """Return whether a form stands in a text as it is or, at the beginning, with a capital letter."""
        return any(
            occurs_in(each, text) or occurs_in(self._capitalized(each), text, only_at_start=True)
            for each in self._forms(form)
        )

    def _alternatives_of(self, forms: tuple[str, ...]) -> tuple[Ids, ...]:
        """Return the ids of all forms of a term; none if the tokenizer does not know its characters."""
        return tuple(dict.fromkeys(ids for form in forms for ids in self._spellings(form)))

    @cached_property
    def _banned_ids(self) -> tuple[Ids, ...]:
        """The ids of all banned phrases, also with a capital letter."""
        forms = dict.fromkeys(form for phrase in self._phrases for form in (phrase, self._capitalized(phrase)))
        # A spelling of the beginning is banned everywhere: without its <s>.
        spellings = [ids[ids[0] == BOS :] for form in forms for ids in self._spellings(form)]
        return tuple(dict.fromkeys(spellings))

    def _spellings(self, form: str) -> list[Ids]:
        """Return the ids of a form inside a sentence and, with `<s>` before them, at its beginning if they differ."""
        inside = [self._after(form, _BEFORE_BLANK, " ")]
        if not needs_blank(form):
            inside.append(self._after(form, _BEFORE, ""))
        at_start = [self._encode(form), self._encode(self._capitalized(form))]
        spellings = [ids for ids in inside if ids]
        spellings += [(BOS, *ids) for ids in at_start if ids and ids not in spellings]
        return list(dict.fromkeys(ids for ids in spellings if UNK not in ids))

    def _after(self, form: str, before: Sequence[str], blank: str) -> Ids:
        """Return the ids of a form after one of the texts and the blank."""
        for text in before:
            head, whole = self._encode(text), self._encode(f"{text}{blank}{form}")
            if whole[: len(head)] == head and UNK not in head:
                return whole[len(head) :]
        return self._encode(form)

    def _capitalized(self, phrase: str) -> str:
        return capitalized(phrase, self.characters.direction.target)

    def _encode(self, text: str) -> Ids:
        (ids,) = self._tokenizer.encode_target([text])
        return tuple(ids)

    def _decode(self, ids: Sequence[int]) -> str:
        (text,) = self._tokenizer.decode_target([ids])
        return text
