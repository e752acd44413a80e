"""Setting and getting the forwarding pipeline (sections 14 and 15)."""

from __future__ import annotations

from typing import Any

from p4gen.errors import P4genError
from p4gen.p4rt.schema import Schema
from p4gen.p4rt.server import write
from p4gen.p4rt.server.pipeline import Pipeline
from p4gen.p4rt.server.target import Target
from p4gen.p4rt.status import Code, StatusError, invalid, not_found, unimplemented
from p4gen.protos import p4runtime as pb

_Actions = pb.SetForwardingPipelineConfigRequest


class Configuration:
    """The pipelines of one device: the active one, and one that is saved but not committed yet.

    A saved pipeline is a loaded program that does not process packets; writes go to it, and when it is committed it
    becomes active with everything written.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self.committed: Pipeline | None = None
        self._saved: Pipeline | None = None

    @property
    def current(self) -> Pipeline | None:
        """The pipeline that reads and writes refer to."""
        return self._saved or self.committed

    def set(self, action: int, config: Any | None) -> bool:
        """Carry out an action of SetForwardingPipelineConfig. Returns whether another pipeline is now active."""
        if action == _Actions.COMMIT:
            if config is not None:
                raise invalid("COMMIT takes no config, it commits the saved one")
            if self._saved is None:
                raise not_found("no config has been saved")
            self._commit(self._saved)
            return True
        if action not in (
            _Actions.VERIFY,
            _Actions.VERIFY_AND_SAVE,
            _Actions.VERIFY_AND_COMMIT,
            _Actions.RECONCILE_AND_COMMIT,
        ):
            raise invalid("the action is not specified") if action == 0 else unimplemented(f"action {action}")
        if config is None:
            raise invalid("a config is missing")
        fresh = self._load(config)
        if action == _Actions.VERIFY:
            return False
        if action == _Actions.VERIFY_AND_SAVE:
            self._saved = fresh
            return False
        if action == _Actions.RECONCILE_AND_COMMIT and self.committed is not None:
            self._reconcile(self.committed, fresh)
        self._commit(fresh)
        return True

    def get(self, response_type: int) -> Any:
        """The response of GetForwardingPipelineConfig; without a config, it is unset."""
        response = pb.GetForwardingPipelineConfigResponse()
        kinds = pb.GetForwardingPipelineConfigRequest
        if self.current is None:
            return response
        config = self.current.config
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        else:
            response.config.SetInParent()
        if response_type in (kinds.ALL, kinds.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(config.p4info)
        if response_type in (kinds.ALL, kinds.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = config.p4_device_config
        return response

    def _load(self, config: Any) -> Pipeline:
        if not config.HasField("p4info"):
            raise invalid("the config has no P4Info")
        try:
            schema = Schema(config.p4info, self._target.translated(config.p4info, config.p4_device_config))
            backend = self._target.load(config.p4info, config.p4_device_config)
        except P4genError as error:
            raise invalid(f"the config cannot be realised: {error}") from None
        except StatusError as error:
            raise invalid(f"the P4Info is not consistent: {error.message}") from None
        kept = pb.ForwardingPipelineConfig()
        kept.CopyFrom(config)
        return Pipeline(kept, schema, backend, self._target.lock, self._target.ports)

    def _commit(self, pipeline: Pipeline) -> None:
        self._target.commit(pipeline.backend)
        self.committed, self._saved = pipeline, None

    def _reconcile(self, old: Pipeline, fresh: Pipeline) -> None:
        """Write everything in ``old`` to ``fresh``; INVALID_ARGUMENT when it does not fit."""
        fresh.schema.translations.take(old.schema.translations)
        for update in old.updates():
            try:
                try:
                    write.apply(fresh, update)
                except StatusError as error:
                    if error.code is not Code.ALREADY_EXISTS:  # an entry of the program that a controller changed
                        raise
                    update.type = pb.Update.MODIFY
                    write.apply(fresh, update)
            except StatusError as error:
                raise invalid(f"the state cannot be preserved: {error.message}") from None
        _keep_state(old, fresh)


def _keep_state(old: Pipeline, fresh: Pipeline) -> None:
    """Copy counters, meters and registers that both programs have, with the same type."""
    counters = {c.name: c for c in fresh.schema.counters.values()}
    for counter in old.schema.counters.values():
        if counter.name in counters and counters[counter.name].size == counter.size:
            for index, value in enumerate(old.backend.counters(counter.name)):
                fresh.backend.write_counter(counter.name, index, value)
    meters = {m.name: m for m in fresh.schema.meters.values()}
    for meter in old.schema.meters.values():
        if meter.name in meters and meters[meter.name].size == meter.size:
            for index in range(meter.size):
                fresh.backend.set_meter(meter.name, index, old.backend.meter(meter.name, index))
    registers = {r.name: r for r in fresh.schema.registers.values()}
    for register in old.schema.registers.values():
        same = registers.get(register.name)
        if same is not None and same.size == register.size and same.element == register.element:
            for index, number in enumerate(old.backend.registers(register.name)):
                fresh.backend.write_register(register.name, index, number)
