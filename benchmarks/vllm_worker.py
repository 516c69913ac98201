"""`vllm.LLM` behind pipes: the process that `vllm_peer.py` starts with vLLM's own interpreter.

`python vllm_worker.py SETTINGS`, JSON of what `vllm.LLM` takes, writes `{"vllm": VERSION}` once the
model is loaded, then answers every line of standard input by a line of standard output:
`{"reset", "prompts", "tokens", "logprobs"}` by `{"ids", "cached"}`, the greedy tokens after every
prompt and the number of its tokens that were read from the prefix cache. It imports nothing but
vLLM, and ends with its input, or with the first error.
"""

import json
import os
import sys


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    # vLLM logs to standard output
    os.dup2(2, 1)
    import vllm  # pyright: ignore[reportMissingImports]

    llm = vllm.LLM(**json.loads(sys.argv[1]))
    print(json.dumps({"vllm": vllm.__version__}), file=replies, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["reset"] and not llm.reset_prefix_cache():
            raise RuntimeError("vLLM did not empty its prefix cache")
        texts = llm.generate(
            [vllm.TokensPrompt(prompt_token_ids=ids) for ids in asked["prompts"]],
            vllm.SamplingParams(
                temperature=0,
                max_tokens=asked["tokens"],
                logprobs=asked["logprobs"],
                ignore_eos=True,
                detokenize=False,
            ),
            use_tqdm=False,
        )
        reply = {
            "ids": [list(text.outputs[0].token_ids) for text in texts],
            "cached": [text.num_cached_tokens for text in texts],
        }
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
