// SPDX-License-Identifier: MIT
// llm.c's GPT behind functions of C, for bench/torch/gpt.py --llm-c FOLDER. Its program is written to be included so.
#define TESTING
#include "train_gpt2.c"

GPT2* llm_c_make(const char* checkpoint) {
    GPT2* it = malloc(sizeof(GPT2));
    gpt2_build_from_checkpoint(it, checkpoint);
    return it;
}
void llm_c_threads(int count) {
#ifdef OMP
    omp_set_num_threads(count);
#else
    (void)count;
#endif
}
/* A step of AdamW; it neither clips nor knows groups. */
float llm_c_step(GPT2* it, int* ids, int* labels, long batch, long context, float rate, int number) {
    gpt2_forward(it, ids, labels, (size_t)batch, (size_t)context);
    const float loss = it->mean_loss;
    gpt2_zero_grad(it);
    gpt2_backward(it);
    gpt2_update(it, rate, 0.9f, 0.95f, 1e-8f, 0.1f, number);
    return loss;
}
void llm_c_free(GPT2* it) {
    gpt2_free(it);
    free(it);
}
