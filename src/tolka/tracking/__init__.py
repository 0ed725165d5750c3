"""Experiment trackers: TensorBoard, Weights & Biases, MLflow and Trackio, chosen by `tracking=`."""
