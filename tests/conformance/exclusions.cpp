#include "conformance/cases.h"

namespace tessera::testing {

const std::vector<Exclusion>& exclusions() {
  static const std::vector<Exclusion> list = {
      {"reference", "Conv/epilogue", "the reference runs one node at a time"},
      {"reference", "elementwise group", "the reference runs one node at a time"},
      {"reference", "NonZero", "NonZero: the sizes of its outputs depend on data"},
      {"npu", "NonZero", "NonZero: the sizes of its outputs depend on data"},
      {"gpu", "NonZero", "NonZero: the sizes of its outputs depend on data"},
      {"npu", "Erf", "Erf: the operator is not supported by 'npu'"},
      {"npu", "TopK", "TopK: the operator is not supported by 'npu'"},
      {"npu", "Pad/reflect", "Pad: mode=reflect is not supported"},
      {"npu", "Resize/cubic", "Resize: mode=cubic is not supported"},
  };
  return list;
}

}  // namespace tessera::testing
