// The grids that come with the program, which commands take by their names: "demo" is demo.toml.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tearless::harness {

/// The file of the packaged grid, or list of grids, that is called so; nullopt for any other word.
std::optional<std::filesystem::path> packaged_grid(const std::string& word);

/// What to say of a word that names nothing: "; the packaged grids … can be named, too". Empty where none are.
std::string packaged_advice(const std::string& word);

}  // namespace tearless::harness
