"""What each flag of vLLM means here: a key, nothing, or something that is not modelled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from servesim.words import listed

#: Factors of counts as people write them (vllm: vllm/utils/argparse_utils.py): 32k is 32,000, 32K is 32,768.
_FACTORS = {letter: 1000**power for power, letter in enumerate("kmgt", start=1)}
_BINARY = {letter.upper(): 1024**power for power, letter in enumerate("kmgt", start=1)}


def whole(value: Any) -> int:
    """Return a whole number, also written as 8k or 32K.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"\s*(-?\d{1,18})(\.\d{1,9})?([kmgtKMGT]?)\s*", str(value))
    if match is None or (match[2] and match[3] not in _FACTORS):
        raise ValueError("must be a whole number, such as 8192, 8k (8,000) or 8K (8,192)")
    return int(Decimal(match[1] + (match[2] or "")) * ({"": 1} | _FACTORS | _BINARY)[match[3]])


def longest(value: Any) -> int | str:
    """Return a number of tokens, or ``auto`` for what fits, which -1 also stands for.

    Raises:
        ValueError: it is neither.
    """
    return "auto" if str(value).strip() in ("auto", "-1") else whole(value)


def number(value: Any) -> float:
    """Return a number.

    Raises:
        ValueError: it is none.
    """
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError("must be a number") from None


def switch(value: Any) -> bool:
    """Return whether a switch is on.

    Raises:
        ValueError: it is neither on nor off.
    """
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def kv_dtype(value: Any) -> str:
    """Return the dtype of the KV cache; 16 bits of one kind weigh what 16 bits of the other do.

    Raises:
        ValueError: it is not modelled.
    """
    known = {
        "auto": "auto",
        **dict.fromkeys(("bfloat16", "float16", "half"), "bf16"),
        **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2"), "fp8"),
    }
    if value not in known:
        raise ValueError(f"is not modelled in this version; modelled are {listed(known)}")
    return known[value]


def queue_order(value: Any) -> dict[str, str]:
    """Return the order of the queue that a scheduling policy is.

    Raises:
        ValueError: there is no such policy.
    """
    if value not in ("fcfs", "priority"):
        raise ValueError("must be fcfs or priority")
    return {"kind": value}


def host_tier(value: Any) -> dict[str, Any]:
    """Return a KV tier of so many GiB of host memory for each engine, all its GPUs together.

    Raises:
        ValueError: it is no number.
    """
    return {"host": {"capacity": number(value)}}


class Rule(NamedTuple):
    """The key that a flag sets, and how its value is read. ``cluster.`` stands for each pool."""

    key: str
    read: Callable[[Any], Any]


RULES: Mapping[str, Rule] = {
    "tensor_parallel_size": Rule("cluster.tensor_parallel_size", whole),
    "max_num_seqs": Rule("scheduler.max_num_seqs", whole),
    "max_num_batched_tokens": Rule("scheduler.max_num_batched_tokens", whole),
    "max_model_len": Rule("scheduler.max_model_len", longest),
    "gpu_memory_utilization": Rule("scheduler.gpu_memory_utilization", number),
    "block_size": Rule("scheduler.block_size", whole),
    "enable_chunked_prefill": Rule("scheduler.enable_chunked_prefill", switch),
    "enable_prefix_caching": Rule("scheduler.enable_prefix_caching", switch),
    "kv_cache_dtype": Rule("scheduler.kv_cache_dtype", kv_dtype),
    "scheduling_policy": Rule("scheduler.queue_order", queue_order),
    "num_gpu_blocks_override": Rule("scheduler.num_gpu_blocks_override", whole),
    "preemption_mode": Rule("scheduler.preemption_mode", str),
    "swap_space": Rule("scheduler.swap_space", number),
    "kv_offloading_size": Rule("scheduler.offload", host_tier),
}


def default_steps(gpu: Mapping[str, Any]) -> Mapping[str, int]:
    """Return what a server of vLLM allows a step on a GPU unless told (vllm/engine/arg_utils.py).

    More from 70 GiB of memory on, but on an A100.
    """
    memory_bytes, name = gpu.get("memory_bytes"), str(gpu.get("name")).lower()
    large = isinstance(memory_bytes, (int, float)) and memory_bytes >= 70 * 2**30 and "a100" not in name
    return {
        "max_num_seqs": 1024 if large else 256,
        "max_num_batched_tokens": 8192 if large else 2048,
    }


_NOT_MODELLED = "{} not modelled in this version"
_PIPELINE = _NOT_MODELLED.format("pipeline parallelism is")
_CONTEXT = _NOT_MODELLED.format("context parallelism is")
_DRAFTS = 'is of an older vLLM: use --speculative-config \'{"method": ..., "num_speculative_tokens": ...}\''

#: Flags that make another deployment of it: refused, unless their value says that they are off.
REFUSED: Mapping[str, str] = {
    "pipeline_parallel_size": _PIPELINE,
    "decode_context_parallel_size": _CONTEXT,
    "prefill_context_parallel_size": _CONTEXT,
    "speculative_model": _DRAFTS,
    "num_speculative_tokens": _DRAFTS,
    "hf_overrides": "change the model: use model.hf_config=PATH and model.KEY=VALUE",
    "rope_scaling": "changes the model: use model.max_position_embeddings=N",
    "kv_cache_memory_bytes": "use scheduler.num_gpu_blocks_override=N, in blocks of a replica",
}
#: Values with which a flag is off, or as it is without it.
OFF = (False, None, 0, 1, "0", "1", "None", "none", "null", "", "{}", "auto")


def _names(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


#: Flags that change times or memory in ways that are not modelled.
TIMED = _names(
    """enforce_eager compilation_config optimization_level performance_mode cudagraph_capture_sizes
    max_cudagraph_capture_size cuda_graph_sizes max_seq_len_to_capture async_scheduling attention_backend
    attention_config cpu_offload_gb cpu_offload_params offload_backend
    kv_offloading_backend kv_transfer_config ec_transfer_config enable_lora max_loras max_lora_rank
    lora_modules lora_extra_vocab_size fully_sharded_loras max_cpu_loras scheduler_cls
    disable_custom_all_reduce max_num_partial_prefills max_long_partial_prefills
    long_prefill_token_threshold num_scheduler_steps multi_step_stream_outputs scheduler_delay_factor
    disable_cascade_attn enable_dbo ubatch_size dbo_decode_token_threshold dbo_prefill_token_threshold
    num_lookahead_slots calculate_kv_scales kv_sharing_fast_prefill stream_interval
    disable_sliding_window override_attention_dtype model_impl structured_outputs_config
    guided_decoding_backend logits_processors logits_processor_pattern collect_detailed_traces
    enable_layerwise_nvtx_tracing profiler_config kernel_config moe_backend all2all_backend enable_eplb
    eplb_config limit_mm_per_prompt mm_processor_kwargs enable_prompt_embeds device"""
)

#: Flags that change neither times nor memory of a text model on a server of its own.
OPERATIONAL = _names(
    """host port uds api_key served_model_name uvicorn_log_level disable_uvicorn_access_log
    disable_access_log_for_endpoints allow_credentials allowed_origins allowed_methods allowed_headers
    ssl_keyfile ssl_certfile ssl_ca_certs enable_ssl_refresh ssl_cert_reqs ssl_ciphers root_path middleware
    enable_request_id_headers disable_fastapi_docs enable_offline_docs h11_max_incomplete_event_size
    h11_max_header_count chat_template chat_template_content_format default_chat_template_kwargs
    trust_request_chat_template response_role return_tokens_as_token_ids enable_auto_tool_choice
    exclude_tools_when_tool_choice_none tool_call_parser tool_parser_plugin tool_server reasoning_parser
    reasoning_parser_plugin enable_reasoning log_config_file max_log_len enable_prompt_tokens_details
    enable_force_include_usage enable_server_load_tracking enable_tokenizer_info_endpoint
    enable_log_requests disable_log_requests enable_log_outputs enable_log_deltas disable_log_stats
    aggregate_engine_logging log_error_stack disable_frontend_multiprocessing api_server_count headless
    tokenizer tokenizer_mode tokenizer_revision tokenizer_pool_size skip_tokenizer_init trust_remote_code
    revision code_revision download_dir load_format model_loader_extra_config safetensors_load_strategy
    ignore_patterns config_format hf_token allowed_local_media_path allowed_media_domains seed max_logprobs
    logprobs_mode generation_config override_generation_config enable_sleep_mode runner convert task
    distributed_executor_backend worker_cls worker_extension_cls worker_use_ray ray_workers_use_nsight
    max_parallel_loading_workers prefix_caching_hash_algo disable_hybrid_kv_cache_manager
    use_v2_block_manager use_tqdm_on_load pt_load_map_location show_hidden_metrics_for_version
    otlp_traces_endpoint kv_cache_metrics kv_cache_metrics_sample cudagraph_metrics enable_mfu_metrics
    enable_logging_iteration_details kv_events_config additional_config shutdown_timeout data_parallel_rank
    data_parallel_start_rank data_parallel_size_local data_parallel_address data_parallel_rpc_port
    data_parallel_hybrid_lb data_parallel_external_lb data_parallel_backend master_addr master_port nnodes
    node_rank allow_deprecated_quantization enable_expert_parallel"""
)
