"""The HTTP API of a Prometheus. What goes wrong is a UserError that names its address, without the password."""

import base64
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Any, NamedTuple

_TIMEOUT = 60.0  # seconds without a byte
_EXAMPLE = "such as http://localhost:9090"
_MOST_SHOWN = 300
_UNAUTHORISED = (401, 403)
_REDIRECTS = (301, 302, 303, 307, 308)


class Address(NamedTuple):
    """Where it is: without a password, and with the header that has it."""

    url: str
    authorization: str = ""


class SeriesAnswer(NamedTuple):
    """One series of an answer: its labels, and (time, value)."""

    labels: Mapping[str, str]
    values: Sequence[tuple[float, float]]


def parse_address(text: str) -> Address:
    """The address of the web page of a Prometheus; a ValueError says what is wrong with it."""
    if not text.isprintable() or " " in text:
        raise ValueError(f"it contains a space or a control character; it is an address, {_EXAMPLE}")
    parts = urllib.parse.urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"it does not begin with http:// or https:// and a host, {_EXAMPLE}")
    if parts.query or parts.fragment:
        raise ValueError(f"it has more than a path after the host; leave away what begins with ? or #, {_EXAMPLE}")
    _ = parts.port  # a ValueError if it is none
    place = parts.netloc.rpartition("@")[2]
    url = f"{parts.scheme}://{place}{parts.path.rstrip('/')}"
    return Address(url, _basic(parts.username, parts.password) if parts.username is not None else "")


def _basic(user: str | None, password: str | None) -> str:
    words = [urllib.parse.unquote(each or "") for each in (user, password)]
    return "Basic " + base64.b64encode(":".join(words).encode()).decode()


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which could take the password to another host."""

    def redirect_request(self, *_args: object) -> None:
        """None."""


class PrometheusApi:
    """A Prometheus to ask. No proxy of the environment is used."""

    def __init__(self, address: Address) -> None:
        self.url = address.url
        self._headers = {"Authorization": address.authorization} if address.authorization else {}
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _StayHere)

    def series(self, match: str, start: float, end: float) -> list[Mapping[str, str]]:
        """The labels of all series that match."""
        found = self._ask("series", {"match[]": match, "start": start, "end": end})
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise self._is_none()
        return found

    def query_range(self, query: str, start: float, end: float, step: float) -> list[SeriesAnswer]:
        """What a query gives from one moment to another."""
        found = self._ask("query_range", {"query": query, "start": start, "end": end, "step": step})
        try:
            return [
                SeriesAnswer(each["metric"], [(float(at), float(value)) for at, value in each["values"]])
                for each in found["result"]
            ]
        except (KeyError, TypeError, ValueError):
            raise self._is_none() from None

    def _ask(self, what: str, values: Mapping[str, object]) -> Any:
        data = urllib.parse.urlencode(values).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{what}", data, self._headers)  # noqa: S310 - http, https
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as response:
                return self._read(response.read())
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise UserError(self._no_answer(error)) from None

    def _read(self, body: bytes) -> Any:
        """What it says."""
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise self._is_none() from None
        if not isinstance(answer, dict) or "status" not in answer:
            raise self._is_none()
        if answer["status"] != "success":
            told = safe(str(answer.get("error", "it says no more")))[:_MOST_SHOWN]
            raise UserError(f"{self.url} refused the query: {told}")
        return answer.get("data")

    def _refusal(self, error: urllib.error.HTTPError) -> UserError:
        if error.code in _REDIRECTS:
            to = safe(error.headers.get("Location", ""))[:_MOST_SHOWN]
            return UserError(f"{self.url} sends elsewhere, to {to}; give the address where Prometheus itself answers")
        if error.code in _UNAUTHORISED:
            how = "give them as in https://USER:PASSWORD@HOST"
            return UserError(f"{self.url} refuses this user and password, or wants some (HTTP {error.code}); {how}")
        try:
            self._read(error.read())
        except UserError as told:
            return told if "refused the query" in str(told) else self._is_none(f" (HTTP {error.code})")
        except (OSError, http.client.HTTPException):
            pass
        return self._is_none(f" (HTTP {error.code})")

    def _is_none(self, why: str = "") -> UserError:
        return UserError(f"{self.url} does not answer as a Prometheus does{why}; give the address of its web page")

    def _no_answer(self, error: Exception) -> str:
        reason = getattr(error, "reason", error)
        why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        if isinstance(reason, TimeoutError):
            why = f"no answer within {_TIMEOUT:.0f} s"
        return f"cannot ask {self.url}: {safe(str(why))}; is it the address of a Prometheus, and is that running?"
