#include "passes/reassemble/reassemble.h"

#include "passes/reassemble/assembler.h"

namespace tessera::passes {

void reassemble_covers(ir::Module& module, ir::Graph& graph, CoverList& covers,
                       std::vector<Note>& notes) {
  reassemble::Assembler assembler(module, graph, covers, notes);
  reassemble::propose_normalizations(assembler);
  reassemble::propose_batch_normalizations(assembler);
  reassemble::propose_activations(assembler);
  reassemble::propose_softmaxes(assembler);
  reassemble::propose_rotary_embeddings(assembler);
  reassemble::propose_attentions(assembler);
  reassemble::propose_products(assembler);
}

}  // namespace tessera::passes
