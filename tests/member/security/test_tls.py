"""Members that speak TLS with each other and with clients, and share a secret."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from remuda.client.network.login import Security, security
from remuda.config import INSECURE_WORDS, MemberConfig, check_exposure, is_loopback
from remuda.datatypes.timestamp import from_micros
from remuda.errors import AuthenticationFailed, InputError, TlsFailed
from remuda.member.member import Member
from remuda.member.security.defences import defences
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, control_pb2, data_pb2
from remuda.rpc.sasl import SecretClient
from remuda.rpc.tls import ClientTls, TlsFiles, client_context
from remuda.rpc.transport import connect
from remuda.world import system_world

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def secret_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("secret") / "secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return str(path)


@pytest.fixture(scope="module")
def tls(certificates):
    certificate, key = certificates.issue("member", "127.0.0.1", "localhost")
    return {"tls_certificate": certificate, "tls_key": key, "tls_ca": certificates.ca}


async def use(cluster, protection):
    first = await cluster.client(1, protection)
    await first.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)")
    await first.sql("INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 30000) g(g)")
    other = await cluster.client(2, protection)
    rows = await other.sql(
        "SELECT count(*), count(DISTINCT a.v) FROM t a JOIN t b ON a.k = b.k + 1"
    )
    assert rows == [(29999, 1)]
    schema = await other.schema("t")
    found = await other.get(schema, *range(1, 40))
    assert [row[0] for row in found] == list(range(1, 40))
    await other.put(schema, (100_001, "new"))
    assert await first.sql("SELECT v FROM t WHERE k = 100001") == [("new",)]


def test_mutual_tls_everywhere(in_cluster, tls, secret_file, certificates):
    certificate, key = certificates.issue("user", "user@example.org")
    protection = security(ca=certificates.ca, certificate=certificate, key=key)
    bare = security(ca=certificates.ca)

    async def scenario(cluster):
        await use(cluster, protection)
        with pytest.raises(TlsFailed, match="wants a certificate of this side"):
            await cluster.client(1, bare)

    settings = {**tls, "tls_client_certificates": "all", "secret_file": secret_file}
    in_cluster(scenario, 2, **settings)


def test_clients_need_no_certificate_by_default(in_cluster, tls, certificates):
    async def scenario(cluster):
        await use(cluster, security(ca=certificates.ca))
        with pytest.raises(TlsFailed, match="speaks TLS only"):
            await cluster.client(1)
        info = cluster.member(1).info
        trusting = ClientTls(client_context(TlsFiles(ca=certificates.ca)))
        for kind, port, hello in (
            (ChannelKind.CONTROL, info.control_port, control_pb2.ControlHandshake()),
            (ChannelKind.DATA, info.data_port, data_pb2.BitClientHandshake()),
        ):
            with pytest.raises(TlsFailed, match="wants a certificate of this side"):
                await connect(info.host, port, kind, hello, tls=trusting)
            with pytest.raises(TlsFailed, match="speaks TLS only"):
                await connect(info.host, port, kind, hello)
        for server in cluster.member(1)._servers.values():
            while len(server.strangers):
                await asyncio.sleep(0.001)

    in_cluster(scenario, 2, **tls)


def test_one_name_for_all_certificates(in_cluster, certificates):
    certificate, key = certificates.issue("named", "member.of.remuda")
    settings = {
        "tls_certificate": certificate,
        "tls_key": key,
        "tls_ca": certificates.ca,
        "tls_server_name": "member.of.remuda",
        "tls_minimum": "1.2",
    }

    async def scenario(cluster):
        await use(cluster, security(ca=certificates.ca, server_name="member.of.remuda"))
        with pytest.raises(TlsFailed, match=r"not valid for '127\.0\.0\.1'"):
            await cluster.client(1, security(ca=certificates.ca))

    in_cluster(scenario, 2, **settings)


class TestSecret:
    def test_with_it(self, in_cluster, secret_file):
        async def scenario(cluster):
            await use(cluster, Security())

        in_cluster(scenario, 3, secret_file=secret_file)

    def test_strangers_are_refused_on_both_channels(self, in_cluster, secret_file, monkeypatch):
        monkeypatch.setattr("remuda.rpc.connection.AUTHENTICATION_PENALTY", 0.01)

        async def scenario(cluster):
            member = cluster.member(1)
            info, clock = member.info, member.core.clock.last
            far = common_pb2.Context(clock=clock + from_micros(30_000_000), view=1, sender=2)
            for kind, port, hello in (
                (ChannelKind.CONTROL, info.control_port, control_pb2.ControlHandshake(context=far)),
                (ChannelKind.DATA, info.data_port, data_pb2.BitClientHandshake(context=far)),
            ):
                with pytest.raises(AuthenticationFailed, match="asks for the secret"):
                    await connect(info.host, port, kind, hello)
                wrong = SecretClient(b"another secret", kind, b"n" * 32)
                with pytest.raises(AuthenticationFailed, match="does not know the secret"):
                    await connect(info.host, port, kind, hello, login=wrong)
                other = ChannelKind.DATA if kind is ChannelKind.CONTROL else ChannelKind.CONTROL
                elsewhere = SecretClient(SECRET.encode(), other, b"n" * 32)
                with pytest.raises(AuthenticationFailed, match="does not know the secret"):
                    await connect(info.host, port, kind, hello, login=elsewhere)
            # What a stranger says about its clock is not heard.
            assert member.core.clock.last < clock + from_micros(10_000_000)
            await use(cluster, Security())

        in_cluster(scenario, 2, secret_file=secret_file)

    def test_members_that_do_not_share_it(self, secret_file, tmp_path):
        other = tmp_path / "other"
        other.write_text("fedcba9876543210")
        other.chmod(0o600)

        async def joining(first_settings, second_settings):
            world = system_world()
            first = Member(MemberConfig(cluster_size=2, **first_settings), world)
            start = asyncio.ensure_future(first.start())
            while ChannelKind.DATA not in first._servers:
                await asyncio.sleep(0.001)
            join = first.addresses()["control"]
            second = Member(MemberConfig(cluster_size=2, join=join, **second_settings), world)
            try:
                await second.start()
            finally:
                await second.stop()
                start.cancel()
                await asyncio.gather(start, return_exceptions=True)
                await first.stop()

        has, none = {"secret_file": secret_file}, {}
        with pytest.raises(AuthenticationFailed, match="asks for the secret of its cluster"):
            asyncio.run(joining(has, none))
        with pytest.raises(AuthenticationFailed, match="does not ask for the secret"):
            asyncio.run(joining(none, has))
        with pytest.raises(AuthenticationFailed, match="does not know the secret"):
            asyncio.run(joining(has, {"secret_file": str(other)}))


class TestInsists:
    def test_loopback_needs_nothing(self):
        for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
            check_exposure(MemberConfig(host=host))
        assert not any(map(is_loopback, ("0.0.0.0", "::", "example.org", "10.0.0.1", "")))

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.7.7", "db.example.org"])
    def test_other_addresses_need_everything(self, host, tls):
        with pytest.raises(InputError) as caught:
            check_exposure(MemberConfig(host=host))
        for name in ("tls_certificate", "secret_file", "users_file"):
            assert name in caught.value.detail
        assert INSECURE_WORDS in caught.value.hint
        with pytest.raises(InputError, match="needs protection") as caught:
            check_exposure(MemberConfig(host=host, **tls, secret_file="x"))
        assert caught.value.detail == "not set: users_file (who may do what)"
        check_exposure(MemberConfig(host=host, **tls, secret_file="x", users_file="x"))

    def test_in_words(self):
        check_exposure(MemberConfig(host="0.0.0.0", insecure=INSECURE_WORDS))
        for words in ("yes", "true", INSECURE_WORDS.upper()):
            with pytest.raises(InputError, match="insecure must be empty or say"):
                MemberConfig(insecure=words)

    def test_a_member_does_not_listen(self):
        async def main():
            member = Member(MemberConfig(host="0.0.0.0"), system_world())
            with pytest.raises(InputError, match="needs protection"):
                await member.start()
            assert not member._servers
            await member.stop()

        asyncio.run(main())


class TestFilesOfSecrets:
    def read(self, **settings):
        return defences(MemberConfig(**settings), system_world())

    def test_a_secret_that_others_can_read(self, tmp_path):
        path = tmp_path / "secret"
        path.write_text(SECRET)
        path.chmod(0o644)
        with pytest.raises(InputError, match=r"others \(mode 644\)") as caught:
            self.read(secret_file=str(path))
        assert caught.value.hint == f"chmod 600 {path}"

    def test_secrets_of_a_wrong_size(self, tmp_path):
        for text in ("short", "x" * 2000, ""):
            path = tmp_path / "secret"
            path.write_text(text)
            path.chmod(0o600)
            with pytest.raises(InputError, match="must have 16 to 1024 bytes"):
                self.read(secret_file=str(path))

    def test_no_secret_there(self, tmp_path):
        with pytest.raises(Exception, match="cannot read"):
            self.read(secret_file=str(tmp_path / "none"))

    def test_a_key_that_others_can_read_is_logged(self, tls, tmp_path, caplog):
        key = tmp_path / "open.key"
        key.write_bytes(Path(tls["tls_key"]).read_bytes())
        key.chmod(0o644)
        self.read(**{**tls, "tls_key": str(key)})
        assert "TLS key can be read or changed by others" in caplog.text
        caplog.clear()
        self.read(**tls)
        assert not caplog.text


def test_settings_that_do_not_fit():
    with pytest.raises(InputError, match="tls_certificate needs tls_ca"):
        MemberConfig(tls_certificate="x")
    with pytest.raises(InputError, match="tls_key is of no use without tls_certificate"):
        MemberConfig(tls_key="x")
    with pytest.raises(InputError, match=r"tls_minimum must be one of 1\.2, 1\.3"):
        dataclasses.replace(MemberConfig(), tls_minimum="1.0")
