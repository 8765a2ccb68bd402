#include "yoke/checkpoint/state_dict_pickle.h"

#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "yoke/base/error.h"

namespace yoke::checkpoint {

namespace {

struct Value;
using Values = std::vector<Value>;

/// What stands on the machine's stack. Containers and tensors lie in its arenas and are referred
/// to, as in Python, so that a memo may name them before they are full.
struct Value {
  enum class Kind { kNothing, kNumber, kText, kSequence, kDictionary, kGlobal, kStorage, kTensor };
  Kind kind = Kind::kNothing;
  std::int64_t number = 0;
  std::string text{};              ///< of a text; "module name" of a global
  Values* items = nullptr;         ///< of a sequence; of a dictionary, key and value in turn
  StoredTensor* tensor = nullptr;  ///< of a tensor; of a storage, what is known already
};

const std::map<std::string, DType>& storages() {
  static const std::map<std::string, DType> known{
      {"torch DoubleStorage", DType::kFloat64}, {"torch FloatStorage", DType::kFloat32},
      {"torch HalfStorage", DType::kFloat16},   {"torch BFloat16Storage", DType::kBFloat16},
      {"torch CharStorage", DType::kInt8},      {"torch IntStorage", DType::kInt32},
      {"torch LongStorage", DType::kInt64},     {"torch ByteStorage", DType::kUInt8},
      {"torch BoolStorage", DType::kBool}};
  return known;
}

class Machine {
 public:
  Machine(std::string_view pickle, const std::string& where) : rest_(pickle), where_(where) {}

  std::vector<StoredTensor> run() {
    for (;;) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') return tensors_of(pop());
      step(code);
    }
  }

 private:
  using Kind = Value::Kind;

  [[noreturn]] void fail(const std::string& what) const {
    throw CheckpointError(
        cat(where_, ": ", what,
            ". yoke reads what torch.save(model.state_dict(), path) writes, and nothing else."));
  }

  std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) fail("the pickle is cut off");
    const auto taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string line() {
    const auto end = rest_.find('\n');
    if (end == std::string_view::npos) fail("the pickle is cut off");
    const std::string text(take(end));
    take(1);
    return text;
  }

  void push(Value value) { stack_.push_back(std::move(value)); }
  void push_number(std::int64_t value) { push({.kind = Kind::kNumber, .number = value}); }
  void push_text(std::size_t bytes) {
    push({.kind = Kind::kText, .text = std::string(take(bytes))});
  }
  void push_container(Kind kind, Values items) {
    arena_.push_back(std::move(items));
    push({.kind = kind, .items = &arena_.back()});
  }
  Value pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
      fail("the pickle is broken");
    Value value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  Values pop_many(std::size_t count) {
    Values values(count);
    for (std::size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }
  Values pop_to_mark() {
    if (marks_.empty()) fail("the pickle is broken");
    const std::size_t mark = marks_.back();
    Values values(std::make_move_iterator(stack_.begin() + static_cast<std::ptrdiff_t>(mark)),
                  std::make_move_iterator(stack_.end()));
    stack_.resize(mark);
    marks_.pop_back();
    return values;
  }
  void add(Kind kind, Values values) {
    const Value container = pop();
    if (container.kind != kind || (kind == Kind::kDictionary && values.size() % 2 != 0))
      fail("the pickle is broken");
    for (auto& value : values) container.items->push_back(std::move(value));
    push(container);
  }
  void remember(std::size_t slot) {
    if (stack_.empty()) fail("the pickle is broken");
    memo_[slot] = stack_.back();
  }
  void recall(std::size_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) fail("the pickle is broken");
    push(found->second);
  }

  void push_global(const std::string& module, const std::string& name) {
    const std::string both = module + " " + name;
    if (both != "collections OrderedDict" && both != "torch._utils _rebuild_tensor_v2" &&
        both != "torch._utils _rebuild_parameter" && !storages().contains(both)) {
      fail(cat("it needs ", module, ".", name));
    }
    push({.kind = Kind::kGlobal, .text = both});
  }

  void step(unsigned char code);
  bool step_number(unsigned char code);
  bool step_container(unsigned char code);
  void persistent();
  void reduce();
  void rebuild_tensor(const Values& arguments);
  std::vector<std::int64_t> numbers_of(const Value& value) const;
  std::vector<StoredTensor> tensors_of(const Value& value) const;

  std::string_view rest_;
  const std::string& where_;
  Values stack_;
  std::vector<std::size_t> marks_;
  std::map<std::size_t, Value> memo_;
  std::deque<Values> arena_;
  std::deque<StoredTensor> tensors_;
};

bool Machine::step_number(unsigned char code) {
  switch (code) {
    case 'N':
      push({});
      return true;
    case 0x88:
    case 0x89:
      push_number(code == 0x88);
      return true;
    case 'K':
      push_number(number<std::uint8_t>());
      return true;
    case 'M':
      push_number(number<std::uint16_t>());
      return true;
    case 'J':
      push_number(number<std::int32_t>());
      return true;
    case 0x8a: {  // little-endian, two's complement, as long as it must be
      const std::size_t bytes = number<std::uint8_t>();
      if (bytes > 8) fail("it has a number of more than 64 bits");
      const auto text = take(bytes);
      std::int64_t value = bytes > 0 && (text.back() & 0x80) != 0 ? -1 : 0;
      std::memcpy(&value, text.data(), bytes);
      push_number(value);
      return true;
    }
    case 'G':  // A float, which no tensor needs; tensors_of names it.
      take(8);
      push({});
      return true;
    default:
      return false;
  }
}

bool Machine::step_container(unsigned char code) {
  switch (code) {
    case '}':
      push_container(Kind::kDictionary, {});
      return true;
    case ']':
    case ')':
      push_container(Kind::kSequence, {});
      return true;
    case 't':
    case 'l':
      push_container(Kind::kSequence, pop_to_mark());
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      push_container(Kind::kSequence, pop_many(code - 0x84u));
      return true;
    case 's':
      add(Kind::kDictionary, pop_many(2));
      return true;
    case 'u':
      add(Kind::kDictionary, pop_to_mark());
      return true;
    case 'a':
      add(Kind::kSequence, pop_many(1));
      return true;
    case 'e':
      add(Kind::kSequence, pop_to_mark());
      return true;
    default:
      return false;
  }
}

void Machine::step(unsigned char code) {
  if (step_number(code) || step_container(code)) return;
  switch (code) {
    case 0x80:  // protocol
      if (number<std::uint8_t>() > 5) fail("it is a pickle of a newer protocol");
      return;
    case 0x95:  // frame: its length
      take(8);
      return;
    case '(':
      marks_.push_back(stack_.size());
      return;
    case 'X':
      return push_text(number<std::uint32_t>());
    case 0x8c:
      return push_text(number<std::uint8_t>());
    case 0x8d:
      return push_text(number<std::uint64_t>());
    case 'q':
      return remember(number<std::uint8_t>());
    case 'r':
      return remember(number<std::uint32_t>());
    case 0x94:
      return remember(memo_.size());
    case 'h':
      return recall(number<std::uint8_t>());
    case 'j':
      return recall(number<std::uint32_t>());
    case 'c': {
      const std::string module = line();
      return push_global(module, line());
    }
    case 0x93: {
      const Values names = pop_many(2);
      return push_global(names[0].text, names[1].text);
    }
    case 'Q':
      return persistent();
    case 'R':
      return reduce();
    case 'b':  // The attributes of an OrderedDict: versions of modules, which yoke does not need.
      pop();
      if (stack_.empty() || stack_.back().kind != Kind::kDictionary)
        fail("it has an object that is no dictionary");
      return;
    default:
      fail(cat("its pickle has the instruction ", static_cast<int>(code),
               ", which no state_dict needs"));
  }
}

void Machine::persistent() {
  const Value id = pop();
  if (id.kind != Kind::kSequence || id.items->size() != 5 || (*id.items)[0].text != "storage")
    fail("it refers to something that is no storage");
  const Values& parts = *id.items;
  const auto dtype = storages().find(parts[1].text);
  if (dtype == storages().end() || parts[2].kind != Kind::kText || parts[4].kind != Kind::kNumber ||
      parts[4].number < 0)
    fail("it has a storage of a kind that yoke does not know");
  tensors_.push_back({.dtype = dtype->second,
                      .storage = parts[2].text,
                      .storage_elements = static_cast<std::uint64_t>(parts[4].number)});
  push({.kind = Kind::kStorage, .tensor = &tensors_.back()});
}

void Machine::reduce() {
  const Values call = pop_many(2);
  if (call[0].kind != Kind::kGlobal || call[1].kind != Kind::kSequence)
    fail("the pickle is broken");
  const Values& arguments = *call[1].items;
  if (call[0].text == "collections OrderedDict" && arguments.empty())
    return push_container(Kind::kDictionary, {});
  if (call[0].text == "torch._utils _rebuild_tensor_v2") return rebuild_tensor(arguments);
  if (call[0].text == "torch._utils _rebuild_parameter" && !arguments.empty() &&
      arguments[0].kind == Kind::kTensor)
    return push(arguments[0]);
  fail("it makes an object that no state_dict has");
}

std::vector<std::int64_t> Machine::numbers_of(const Value& value) const {
  if (value.kind != Kind::kSequence) fail("a tensor has no shape");
  std::vector<std::int64_t> numbers;
  for (const auto& item : *value.items) {
    if (item.kind != Kind::kNumber) fail("a tensor has no shape");
    numbers.push_back(item.number);
  }
  return numbers;
}

void Machine::rebuild_tensor(const Values& arguments) {
  if (arguments.size() < 4 || arguments[0].kind != Kind::kStorage ||
      arguments[1].kind != Kind::kNumber)
    fail("a tensor is described in a way that yoke does not know");
  StoredTensor tensor = *arguments[0].tensor;
  tensor.offset = arguments[1].number;
  tensor.shape = numbers_of(arguments[2]);
  tensor.strides = numbers_of(arguments[3]);
  if (tensor.shape.size() != tensor.strides.size()) fail("a tensor has no strides");
  tensors_.push_back(std::move(tensor));
  push({.kind = Kind::kTensor, .tensor = &tensors_.back()});
}

std::vector<StoredTensor> Machine::tensors_of(const Value& value) const {
  if (value.kind != Kind::kDictionary) fail("it is not a dictionary of tensors");
  std::vector<StoredTensor> found;
  for (std::size_t i = 0; i + 1 < value.items->size(); i += 2) {
    const Value& key = (*value.items)[i];
    const Value& item = (*value.items)[i + 1];
    if (key.kind != Kind::kText) fail("it has a key that is no name");
    if (item.kind == Kind::kDictionary) {
      fail(cat("\"", key.text,
               "\" is a dictionary, so this is a checkpoint of a program. Save the "
               "state_dict in it by itself"));
    }
    if (item.kind != Kind::kTensor) fail(cat("\"", key.text, "\" is no tensor"));
    found.push_back(*item.tensor);
    found.back().name = key.text;
  }
  return found;
}

}  // namespace

std::vector<StoredTensor> read_state_dict_pickle(std::string_view pickle,
                                                 const std::string& where) {
  return Machine(pickle, where).run();
}

}  // namespace yoke::checkpoint
