// Devices in the memory of the CPU, with the rules of CUDA about which of them may be mixed.
//
// Every operation that PyTorch does not compose from others for a foreign backend lands in
// `on_cpu`: it checks the devices of its tensors as CUDA's kernels do, runs the CPU's kernel on
// the same memory, and gives back tensors of the device.

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <array>
#include <atomic>

namespace {

constexpr auto EMULATED = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex DEVICES = 4;
thread_local c10::DeviceIndex current = 0;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return EMULATED; }
  c10::Device getDevice() const override { return {EMULATED, current}; }
  void setDevice(c10::Device to) const override {
    TORCH_CHECK(to.index() < DEVICES, "no such device: ", to);
    uncheckedSetDevice(to);
  }
  void uncheckedSetDevice(c10::Device to) const noexcept override {
    if (to.has_index()) current = to.index();
  }
  c10::Device exchangeDevice(c10::Device to) const override {
    auto before = getDevice();
    setDevice(to);
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return DEVICES; }
  c10::Stream getStream(c10::Device of) const override {
    return c10::Stream(c10::Stream::DEFAULT, of);
  }
  c10::Stream exchangeStream(c10::Stream to) const override { return getStream(to.device()); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// Bytes free on each device; every piece of memory is preceded by its size.
std::array<std::atomic<int64_t>, DEVICES> room;
constexpr size_t BEFORE = c10::gAlignment;

void free_memory(void* at) {
  if (!at) return;
  auto* piece = static_cast<std::pair<size_t, c10::DeviceIndex>*>(
      static_cast<void*>(static_cast<char*>(at) - BEFORE));
  room[piece->second] += static_cast<int64_t>(piece->first);
  c10::free_cpu(piece);
}

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(EMULATED, current);
    TORCH_CHECK_WITH(OutOfMemoryError, room[current] >= static_cast<int64_t>(bytes),
                     device, " is out of memory: ", bytes, " bytes wanted, ", room[current].load(),
                     " free");
    room[current] -= static_cast<int64_t>(bytes);
    void* piece = c10::alloc_cpu(bytes + BEFORE);
    new (piece) std::pair<size_t, c10::DeviceIndex>(bytes, current);
    void* at = static_cast<char*>(piece) + BEFORE;
    return {at, at, &free_memory, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
} memory;
REGISTER_ALLOCATOR(EMULATED, &memory);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return DEVICES; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  c10::Device getDeviceFromPtr(void*) const override { return {EMULATED, current}; }
} hooks;
const bool registered = (at::RegisterPrivateUse1HooksInterface(&hooks), true);

c10::Device placed(std::optional<c10::Device> wanted) {
  return {EMULATED, wanted && wanted->has_index() ? wanted->index() : current};
}

constexpr c10::DispatchKeySet KEYS(c10::DispatchKey::PrivateUse1);

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard guard(placed(device));
  return at::detail::empty_generic(size, &memory, KEYS, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool>) {
  c10::DeviceGuard guard(placed(device));
  return at::detail::empty_strided_generic(size, stride, &memory, KEYS,
                                           c10::dtype_or_default(dtype));
}

// The same memory under another device; the tensor it is of lives as long as it does.
at::Tensor seen_on(const at::Tensor& x, c10::Device device) {
  auto options = x.options().device(device);
  if (x.numel() == 0 && device.type() == EMULATED)
    return empty_strided(x.sizes(), x.strides(), x.scalar_type(), {}, device, {});
  return at::from_blob(
      x.data_ptr(), x.sizes(), x.strides(), [x](void*) {}, options, device);
}

// What the CPU made a view of `base`'s memory, as a view of `base` itself.
at::Tensor view_of(const at::Tensor& base, const at::Tensor& x) {
  const auto ahead = static_cast<char*>(x.data_ptr()) - static_cast<char*>(base.data_ptr());
  const auto offset = base.storage_offset() + ahead / static_cast<int64_t>(base.itemsize());
  return at::native::as_strided_tensorimpl(base, x.sizes(), x.strides(), offset);
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  seen_on(to, at::kCPU).copy_(seen_on(from, at::kCPU));
  return to;
}

// CUDA counts integers, a CPU only floats; mixtures of experts take the device's way.
at::Tensor histc(const at::Tensor& x, int64_t bins, const at::Scalar& min, const at::Scalar& max) {
  const auto counts = seen_on(x, at::kCPU).to(at::kDouble).histc(bins, min, max);
  return seen_on(counts.to(x.scalar_type()), x.device());
}

// What CUDA takes from the CPU beside tensors of its own: the indices of `x[i]`, and single
// numbers (0-dim) where elements are computed one by one; Python's numbers come in the same form,
// and go anywhere. Nothing from a second device.
void check(const c10::OperatorHandle& op, const std::string& argument, bool written,
           const at::Tensor& x, c10::Device device) {
  if (x.device() == device || x.unsafeGetTensorImpl()->is_wrapped_number()) return;
  const auto& name = op.schema().name();
  const bool indexes = name == "aten::index" || name == "aten::index_put" ||
                       name == "aten::index_put_" || name == "aten::_index_put_impl_";
  const bool number = x.dim() == 0 && !written &&
                      (op.hasTag(at::Tag::pointwise) || indexes || name == "aten::fill_" ||
                       name == "aten::masked_fill_" || name == "aten::masked_fill");
  const bool allowed = x.is_cpu() && (number || (indexes && argument == "indices"));
  TORCH_CHECK(allowed, "Expected all tensors to be on the same device, but found at least two "
              "devices, ", device, " and ", x.device(), "! (", name, ", argument ", argument, ")");
}

template <class Each>
void each_tensor(c10::IValue& value, Each each) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) value = each(value.toTensor());
  } else if (value.isTensorList()) {
    auto of = value.toTensorVector();
    for (auto& x : of) x = each(x);
    value = of;
  } else if (value.isList() && value.toListRef().size() &&
             (value.isOptionalTensorList() || value.toListRef()[0].isTensor())) {
    c10::List<std::optional<at::Tensor>> of;
    for (const c10::IValue& x : value.toListRef())
      of.push_back(x.isTensor() && x.toTensor().defined() ? std::optional(each(x.toTensor()))
                                                          : std::nullopt);
    value = of;
  }
}

void on_cpu(const c10::OperatorHandle& op, c10::Stack* stack) {
  const auto& schema = op.schema();
  const auto given = schema.arguments().size(), wanted = schema.returns().size();
  auto arguments = torch::jit::last(*stack, given).vec();
  std::optional<c10::Device> device;
  for (size_t i = 0; i < given; ++i) {
    auto value = arguments[i];
    // an operation is where its first tensor is that could not come from the CPU
    each_tensor(value, [&](const at::Tensor& x) {
      if (!device && x.device().type() == EMULATED) device = x.device();
      return x;
    });
    if (!device && value.isDevice() && value.toDevice().type() == EMULATED)
      device = placed(value.toDevice());
  }
  TORCH_INTERNAL_ASSERT(device, schema.name());
  if (schema.name() == "aten::index") device = arguments[0].toTensor().device();
  std::vector<std::pair<at::Tensor, at::Tensor>> resized;
  for (size_t i = 0; i < given; ++i) {
    const auto& argument = schema.arguments()[i];
    auto& value = (*stack)[stack->size() - given + i];
    const bool written = argument.alias_info() && argument.alias_info()->isWrite();
    each_tensor(value, [&](const at::Tensor& x) {
      check(op, argument.name(), written, x, *device);
      if (x.device().type() != EMULATED) return x;
      // an empty output is one that the kernel gives its size
      if (written && x.numel() == 0) {
        resized.emplace_back(x, at::empty_like(x, x.options().device(at::kCPU)));
        return resized.back().second;
      }
      return seen_on(x, at::kCPU);
    });
    if (value.isDevice()) value = c10::Device(at::kCPU);
  }
  op.callBoxed(stack);
  for (const auto& [own, filled] : resized) {
    const auto whole = seen_on(filled, *device);
    own.unsafeGetTensorImpl()->set_storage_keep_dtype(whole.storage());
    own.unsafeGetTensorImpl()->set_sizes_and_strides(whole.sizes(), whole.strides());
  }
  for (size_t i = 0; i < wanted; ++i) {
    auto& value = (*stack)[stack->size() - wanted + i];
    const auto* alias = schema.returns()[i].alias_info();
    if (alias && alias->isWrite()) {
      for (size_t j = 0; j < given; ++j) {
        const auto* of = schema.arguments()[j].alias_info();
        if (of && of->isWrite() && of->beforeSets() == alias->beforeSets()) value = arguments[j];
      }
      continue;
    }
    each_tensor(value, [&](const at::Tensor& x) {
      return alias ? view_of(arguments[0].toTensor(), x) : seen_on(x, *device);
    });
  }
}

TORCH_LIBRARY(emulated, m) {
  for (auto& bytes : room) bytes = int64_t{1} << 40;
  m.def("room(int device) -> int", [](int64_t device) { return room[device].load(); });
  m.def("set_room(int device, int bytes) -> ()",
        [](int64_t device, int64_t bytes) { room[device] = bytes; });
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("_copy_from", copy_from);
  m.impl("histc", histc);
}

}  // namespace
