# SPDX-License-Identifier: Apache-2.0
"""States of trainings by names."""
