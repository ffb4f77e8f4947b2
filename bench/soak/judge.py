"""Says of each answer whether it can be true.

Some answers are wrong whatever the faults: bytes that nobody has put, a code that nothing explains. Others are wrong only if no
fault explains them, which is known a little later (a false death is noticed by looking): they are suspicions, kept with the
time in which there must not have been a fault, and decided when enough time has passed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from soak.truth import Attempt, Faults, Object, Removal

DECIDE_AFTER_S = 8.0
PATIENT_S = 30.0  # calls with less time than this may time out on a slow machine
EARLY_S = 0.25  # by so much may a call end before its deadline, which the worker counts from later

UNEXPLAINED = ("invalid_argument", "not_authorised", "version_mismatch", "internal_error", "internal", "cancelled", "type_mismatch")


@dataclass
class Call:
    """What was asked, of whom, when, and what came of it."""

    host: int
    text: str
    began: float
    ended: float
    timeout_s: float
    ok: bool
    words: str

    @property
    def code(self) -> str:
        return "ok" if self.ok else self.words.partition(" ")[0]

    @property
    def sentence(self) -> str:
        return self.words.partition(" ")[2]

    def __str__(self) -> str:
        took = self.ended - self.began
        answer = "ok" if self.ok else "fail"
        return f"host {self.host}, {took:.2f} s, at {self.began:.2f}: {self.text} -> {answer} {self.words}"


@dataclass
class Suspicion:
    text: str
    call: Call
    explained: Callable[[], bool]
    decide_at: float


class Judge:
    def __init__(self, faults: Faults, *, names_again: bool = True):
        """`names_again`: a deleted name can be put again at once."""
        self._faults = faults
        self._names_again = names_again
        self._suspicions: list[Suspicion] = []
        self.violations: list[str] = []
        self.excused = 0  # suspicions that faults explain

    # ---- verdicts -------------------------------------------------------------

    def wrong(self, text: str, call: Call | None = None) -> None:
        self.violations.append(f"{text}: {call}" if call else text)

    def suspect(self, text: str, call: Call, explained: Callable[[], bool]) -> None:
        self._suspicions.append(Suspicion(text, call, explained, call.ended + DECIDE_AFTER_S))

    def decide(self, now: float) -> None:
        """The suspicions of which enough is known."""
        ripe = [s for s in self._suspicions if s.decide_at <= now]
        self._suspicions = [s for s in self._suspicions if s.decide_at > now]
        for suspicion in ripe:
            if suspicion.explained():
                self.excused += 1
            else:
                self.wrong(suspicion.text, suspicion.call)

    # ---- what all calls have in common -------------------------------------------

    def failed(self, call: Call, allowed: tuple[str, ...], since: float | None = None) -> None:
        """The code and the sentence of a failure; its time runs from `since`, if not from the call itself."""
        if call.code in UNEXPLAINED or call.code not in (*allowed, "unavailable"):
            self.wrong("a failure that nothing explains", call)
        if len(call.sentence) < 10:
            self.wrong("a failure without a reason", call)
        if call.code == "unavailable":
            self.suspect("the daemon was there", call, lambda: self._faults.away(call.host, call.began - 1, call.ended))
        if call.code == "store_full" and not re.search(r"\d", call.sentence):
            self.wrong("a full store without numbers", call)
        if call.code == "timed_out" and call.ended - (call.began if since is None else since) < call.timeout_s - EARLY_S:
            self.wrong("timed out before its time", call)

    def _calm(self, call: Call) -> bool:
        return self._faults.calm(call.began - 1, call.ended)

    def living(self, thing: Object, now: float, but: Removal | None = None) -> Attempt | None:
        """The put that everybody must be able to read."""
        found = thing.living(self._faults, now, but)
        again = found and thing.minted_on is None and any(r.began < found.ended for r in thing.removals)
        return None if again and not self._names_again else found  # where a name is not free again, nothing is promised of it

    # ---- puts -----------------------------------------------------------------

    def put(self, thing: Object, attempt: Attempt, call: Call) -> None:
        attempt.ended = call.ended
        attempt.outcome = call.code
        others = [other for other in thing.attempts if other is not attempt]
        if call.ok:
            self._accepted(thing, attempt, others, call)
            return
        self.failed(call, ("timed_out", "exists", "deleted", "store_full"))
        if call.code == "exists":
            if not any(other.may_exist and other.began <= call.ended for other in others):
                self.wrong("nobody else has put it", call)
            elif self._names_again and all(self._surely_removed(thing, other, call.began) for other in others if other.may_exist):
                self.suspect("what exists was deleted before", call, lambda: self._faults.separated(thing.born, call.ended))
        if call.code == "deleted":
            if not any(removal.began <= call.ended for removal in thing.removals):
                self.wrong("nobody has deleted it", call)
            elif thing.minted_on is None and self._names_again and not thing.removed(call.began, call.ended):
                self.suspect("a deleted name cannot be put again", call, lambda: self._faults.separated(thing.born, call.ended))
        if call.code == "timed_out" and call.timeout_s >= PATIENT_S:
            self.suspect("a put without faults timed out", call, lambda: not self._calm(call))

    def _accepted(self, thing: Object, attempt: Attempt, others: list[Attempt], call: Call) -> None:
        def separated() -> bool:
            return self._faults.separated(thing.born, call.ended)

        for other in others:
            lives_on = other.outcome == "ok" and other.ended < attempt.began and not thing.removed(other.began, call.ended)
            if lives_on and not self._faults.died(other.host, other.began, call.ended):
                self.suspect(f"put although tag {other.tag} exists", call, separated)
        if thing.minted_on is not None and any(r.outcome == "known" and r.ended < attempt.began for r in thing.removals):
            minter = thing.minted_on
            self.suspect(
                "a minted id was put again after its delete",
                call,
                lambda: separated() or self._faults.died(minter, thing.born, call.ended),
            )

    def _surely_removed(self, thing: Object, attempt: Attempt, now: float) -> bool:
        return any(r.outcome == "known" and attempt.ended < r.began and r.ended < now for r in thing.removals)

    # ---- gets -----------------------------------------------------------------

    def get(self, thing: Object, call: Call, *, waits_if_lost: bool = False) -> None:
        """Also of a follow, and of a view that outlives its client."""
        if call.ok:
            kind, _, value = call.words.partition(" ")
            if kind == "sum":
                self._read_sum(thing, value, call)
            else:
                self._read(thing, int(value), call)
            return
        # A reduce has a deadline of its own, and who gets its target late is told of it early.
        self.failed(call, ("timed_out", "lost", "deleted", "store_full"), thing.born if thing.is_target else None)
        if thing.is_target:
            self._target_failed(thing, call)
        elif call.code == "lost":
            self._told_lost(thing, call, waits_if_lost)
        elif call.code == "deleted":
            self._told_deleted(thing, call)
        elif call.code == "timed_out" and call.timeout_s >= PATIENT_S:
            if self.living(thing, call.began):
                self.suspect("an object that exists was not found", call, lambda: not self._calm(call) or self._gone(thing, call))

    def _gone(self, thing: Object, call: Call) -> bool:
        """By now there may be no copy: it died, or was deleted, meanwhile."""
        return self.living(thing, call.ended) is None

    def _read(self, thing: Object, tag: int, call: Call) -> None:
        attempt = thing.attempt(tag)
        if attempt is None or attempt.began > call.ended:
            self.wrong("bytes that nobody has put under this id", call)
            return
        if attempt.outcome == "abandoned":
            self.wrong("bytes that were given up", call)
        elif attempt.refused and attempt.ended < call.began:
            self.wrong(f"bytes of a put that was refused ({attempt.outcome})", call)
        for removal in thing.removals:
            if removal.outcome == "known" and attempt.ended < removal.began and removal.ended < call.began:
                self.suspect(
                    "deleted bytes came back",
                    call,
                    lambda r=removal: self._faults.separated(r.began, r.ended) or self._faults.separated(call.began, call.ended),
                )
                break
        newer = [a for a in thing.attempts if a.outcome == "ok" and a.began > attempt.ended and a.ended < call.began]
        if newer:
            self.suspect(
                f"old bytes after tag {newer[-1].tag} was put",
                call,
                lambda: self._faults.separated(attempt.began, call.ended),
            )

    def _read_sum(self, thing: Object, mask: str, call: Call) -> None:
        if thing.sum is not None and thing.sum != mask:
            self.wrong(f"another reader found the sum of other sources ({thing.sum})", call)
        thing.sum = mask

    def _told_lost(self, thing: Object, call: Call, waits_if_lost: bool) -> None:
        thing.lost = True
        if waits_if_lost:
            self.wrong("a get that waits for lost objects ended", call)
        if not any(a.may_exist and a.began <= call.ended for a in thing.attempts):
            self.wrong("nobody has put what was lost", call)
        living = self.living(thing, call.began)
        if living:
            self.suspect(
                f"tag {living.tag} is not lost: host {living.host} lives",
                call,
                lambda: self._gone(thing, call) or self._faults.separated(call.began - 1, call.ended),
            )

    def _told_deleted(self, thing: Object, call: Call) -> None:
        if not any(r.began <= call.ended for r in thing.removals):
            self.wrong("nobody has deleted it", call)
            return
        again = [a for a in thing.attempts if a.outcome == "ok" and a.ended < call.began]
        if again and not thing.removed(min(a.began for a in again if a.ended == max(b.ended for b in again)), call.ended):
            self.suspect("it was put again after its delete", call, lambda: self._faults.separated(thing.born, call.ended))

    def _target_failed(self, thing: Object, call: Call) -> None:
        """A reduce may fail with a node, a source or its time."""
        gone = thing.removals or any(source.removals for source in thing.sources)
        if call.code == "deleted" and not gone:
            self.wrong("neither the target nor a source was deleted", call)
        if call.code == "lost":
            self.suspect("nobody died during this reduce", call, lambda: not self._faults.calm(thing.born - 1, call.ended))
        if call.code == "timed_out" and call.timeout_s >= PATIENT_S and thing.reduce_outcome == "ok" and not gone:
            alive = [self.living(source, call.began) for source in thing.sources]
            if sum(1 for source in alive if source) >= thing.count:
                self.suspect("a reduce with enough sources did not end", call, lambda: not self._faults.calm(thing.born - 1, call.ended))

    # ---- everything else --------------------------------------------------------

    def remove(self, thing: Object, removal: Removal, call: Call) -> None:
        existed = self.living(thing, call.began, removal) and not thing.removed(call.began, call.ended, removal)
        removal.ended = call.ended
        removal.outcome = call.words.strip() if call.ok else call.code
        if call.ok:
            if removal.outcome == "unknown" and existed:
                self.suspect("an object that exists is unknown to its delete", call, lambda: not self._calm(call))
            return
        self.failed(call, ("timed_out",))
        if call.code == "timed_out" and call.timeout_s >= PATIENT_S:
            self.suspect("a delete without faults timed out", call, lambda: not self._calm(call))

    def wait(self, things: list[Object], call: Call) -> None:
        if not call.ok:
            self.failed(call, ("deleted", "lost"))
            return
        ready = call.words.split()
        for thing in things:
            if thing.id in ready and not thing.is_target and not any(a.may_exist for a in thing.attempts):
                self.wrong(f"{thing.id} is not ready: nobody has put it", call)

    def reduce(self, thing: Object, call: Call) -> None:
        thing.reduce_outcome = call.code
        if not call.ok:
            self.failed(call, ("timed_out", "store_full", "deleted", "lost"))
            if call.code == "timed_out" and call.timeout_s >= PATIENT_S:
                self.suspect("a reduce without faults was not accepted", call, lambda: not self._calm(call))

    def burst(self, call: Call) -> None:
        if call.ok:
            return
        self.failed(call, ("timed_out", "store_full", "lost", "deleted"))
        self.suspect("small objects on one node failed", call, lambda: not self._calm(call))

    def hangs(self, host: int, text: str, began: float, now: float) -> None:
        self.wrong(f"no answer after {now - began:.0f} s, beyond any deadline: host {host}: {text}")
